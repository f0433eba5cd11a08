// shaders.h: the SPIR-V of shaders/, as the list in CMakeLists.txt names it.
#ifndef KEEL_PLUGINS_VULKAN_SHADERS_H
#define KEEL_PLUGINS_VULKAN_SHADERS_H
#include <string_view>

#include "device.h"

namespace vulkan {

// A module by name: "copy_b8", "reduce_f32"; no words: there is none.
Code Shader(std::string_view name);

extern const Code kRelocate, kClock;

}  // namespace vulkan
#endif
