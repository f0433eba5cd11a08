// shaders.h: the SPIR-V of shaders/, as the list in CMakeLists.txt names it.
#ifndef KEEL_PLUGINS_VULKAN_SHADERS_H
#define KEEL_PLUGINS_VULKAN_SHADERS_H
#include <string_view>

#include "device.h"

namespace vulkan {

extern const Code kRelocate, kClock, kMatmul, kSoftmax;
extern const Code kReduceF32, kReduceF64, kReduceI32, kReduceI64;
// By the width of an element, 1 << i bytes.
extern const Code kCopy[4], kGather[4];

}  // namespace vulkan
#endif
