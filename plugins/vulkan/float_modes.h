// float_modes.h: IEEE 754 in all shaders. Without these modes x - x may be 0 where x is infinite.
#ifndef KEEL_PLUGINS_VULKAN_FLOAT_MODES_H
#define KEEL_PLUGINS_VULKAN_FLOAT_MODES_H
#include "sdk/plugin/spirv.h"
#include "vulkan.h"

namespace vulkan {

// The modes of a driver: for zeros, infinities and NaNs, for denormals, for rounding to nearest even.
std::vector<keel::spirv::FloatMode> FloatModes(const VkPhysicalDeviceVulkan12Properties& driver);

}  // namespace vulkan
#endif
