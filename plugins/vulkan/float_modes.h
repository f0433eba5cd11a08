// float_modes.h: IEEE 754 in all shaders. Without these modes a driver may take x - x for 0
// where x is infinite, take denormal numbers for 0, and round as it likes.
#ifndef KEEL_PLUGINS_VULKAN_FLOAT_MODES_H
#define KEEL_PLUGINS_VULKAN_FLOAT_MODES_H
#include "sdk/plugin/spirv.h"
#include "vulkan.h"

namespace vulkan {

// The modes that a driver has, out of: zeros, infinities and NaNs are kept; denormals are kept; results are
// rounded to nearest even.
std::vector<keel::spirv::FloatMode> FloatModes(const VkPhysicalDeviceVulkan12Properties& driver);

}  // namespace vulkan
#endif
