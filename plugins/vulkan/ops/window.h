// window.h: the numbers of windows over images, as shaders/window.glsl reads them.
#ifndef KEEL_PLUGINS_VULKAN_WINDOW_H
#define KEEL_PLUGINS_VULKAN_WINDOW_H
#include <algorithm>

#include "sdk/plugin/window.h"
#include "shader_op.h"

namespace vulkan {

using Window = keel::plugin::Window<uint32_t, int32_t>;
using ConvSizes = keel::plugin::ConvSizes<uint32_t, int32_t>;

// Whether shaders/window.glsl may divide in f32.
inline bool IsSmall(const Window& w, uint64_t other = 0) {
  return std::max<uint64_t>({other, w.pixels(), w.windows(), w.taps()}) < 1 << 20;
}

}  // namespace vulkan
#endif
