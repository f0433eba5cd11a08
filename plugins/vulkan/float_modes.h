// float_modes.h: what a driver must keep of IEEE 754 in all shaders. Without it a driver may take x - x for 0
// where x is infinite, denormal numbers for 0, and round as it likes.
#ifndef KEEL_PLUGINS_VULKAN_FLOAT_MODES_H
#define KEEL_PLUGINS_VULKAN_FLOAT_MODES_H
#include <cstddef>
#include <vector>

#include "sdk/plugin/spirv.h"
#include "vulkan.h"

namespace vulkan {

struct FloatMode {
  keel::spirv::FloatMode mode;
  uint32_t width;  // bits of the floats that it is for
};

// The modes that a driver with these properties has, out of: zeros, infinities and NaNs are kept; denormals
// are kept; results are rounded to nearest even.
std::vector<FloatMode> FloatModes(const VkPhysicalDeviceVulkan12Properties& driver);

// The module of SPIR-V 1.4 or newer with these modes for its entry point.
keel::spirv::Words WithFloatModes(const uint32_t* words, size_t count, const std::vector<FloatMode>& modes);

}  // namespace vulkan
#endif
