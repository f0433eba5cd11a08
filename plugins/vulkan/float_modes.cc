// float_modes.cc: see float_modes.h.
#include "float_modes.h"

#include <array>

namespace vulkan {
namespace {

using Modes = std::vector<keel::spirv::FloatMode>;

// has: whether the driver has the mode for 16, 32 and 64 bits. differ: which of these may differ in it.
void Add(Modes* out, keel::spirv::Mode mode, std::array<VkBool32, 3> has,
         VkShaderFloatControlsIndependence differ) {
  if (differ != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL) has[0] = has[2] = has[0] && has[2];
  if (differ == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE) has[0] = has[1] = has[2] = has[0] && has[1];
  for (uint32_t i = 0; i < 3; i++)
    if (has[i]) out->push_back({mode, 16U << i});
}

}  // namespace

Modes FloatModes(const VkPhysicalDeviceVulkan12Properties& v) {
#define WIDTHS(mode) {v.shader##mode##Float16, v.shader##mode##Float32, v.shader##mode##Float64}
  Modes modes;
  Add(&modes, keel::spirv::kSignedZeroInfNanPreserve, WIDTHS(SignedZeroInfNanPreserve),
      VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL);
  Add(&modes, keel::spirv::kDenormPreserve, WIDTHS(DenormPreserve), v.denormBehaviorIndependence);
  Add(&modes, keel::spirv::kRoundingModeRte, WIDTHS(RoundingModeRTE), v.roundingModeIndependence);
#undef WIDTHS
  return modes;
}

}  // namespace vulkan
