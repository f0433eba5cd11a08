// float_modes.cc: see float_modes.h.
#include "float_modes.h"

#include <array>

namespace vulkan {
namespace {

constexpr size_t kHeaderWords = 5;

// Which of 16, 32 and 64 bits may have a mode: those that the driver supports, if it lets them differ.
std::array<bool, 3> Allowed(std::array<VkBool32, 3> has, VkShaderFloatControlsIndependence differ) {
  const bool pair = has[0] && has[2], all = pair && has[1];
  if (differ == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL) return {has[0] != 0, has[1] != 0, has[2] != 0};
  if (differ == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY) return {pair, has[1] != 0, pair};
  return {all, all, all};
}

void Add(std::vector<FloatMode>* out, keel::spirv::FloatMode mode, std::array<bool, 3> widths) {
  for (uint32_t i = 0; i < 3; i++)
    if (widths[i]) out->push_back({mode, 16U << i});
}

}  // namespace

std::vector<FloatMode> FloatModes(const VkPhysicalDeviceVulkan12Properties& driver) {
  std::vector<FloatMode> modes;
  Add(&modes, keel::spirv::kSignedZeroInfNanPreserve,
      Allowed({driver.shaderSignedZeroInfNanPreserveFloat16, driver.shaderSignedZeroInfNanPreserveFloat32,
               driver.shaderSignedZeroInfNanPreserveFloat64},
              VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL));
  Add(&modes, keel::spirv::kDenormPreserve,
      Allowed({driver.shaderDenormPreserveFloat16, driver.shaderDenormPreserveFloat32,
               driver.shaderDenormPreserveFloat64},
              driver.denormBehaviorIndependence));
  Add(&modes, keel::spirv::kRoundingModeRte,
      Allowed({driver.shaderRoundingModeRTEFloat16, driver.shaderRoundingModeRTEFloat32,
               driver.shaderRoundingModeRTEFloat64},
              driver.roundingModeIndependence));
  return modes;
}

keel::spirv::Words WithFloatModes(const uint32_t* words, size_t count, const std::vector<FloatMode>& modes) {
  using namespace keel::spirv;
  Words out(words, words + kHeaderWords);
  for (const FloatMode& each : modes) Append(&out, kCapability, {CapabilityOf(each.mode)});
  for (size_t at = kHeaderWords; at < count;) {
    const uint32_t op = words[at] & 0xFFFF, length = words[at] >> 16;
    out.insert(out.end(), words + at, words + at + length);
    if (op == kEntryPoint)  // its second operand is the function
      for (const FloatMode& each : modes)
        Append(&out, kExecutionMode, {words[at + 2], each.mode, each.width});
    at += length;
  }
  return out;
}

}  // namespace vulkan
