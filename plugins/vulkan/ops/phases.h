// phases.h: the padded copy of a convolution's image, and what product.comp needs to read it.
#ifndef KEEL_PLUGINS_VULKAN_PHASES_H
#define KEEL_PLUGINS_VULKAN_PHASES_H
#include <algorithm>

#include "product.h"
#include "window.h"

namespace vulkan {

// As shaders/phases.comp reads it. Of a window dim: extent, cells of the copy; phase, phases that the window
// reads.
struct Phases {
  uint32_t channels, cells = 1, phases = 1, inner, taps;
  uint32_t image[KEEL_MAX_RANK] = {}, extent[KEEL_MAX_RANK] = {}, phase[KEEL_MAX_RANK] = {},
           window[KEEL_MAX_RANK] = {};
  int32_t stride[KEEL_MAX_RANK] = {}, dil[KEEL_MAX_RANK] = {}, lo[KEEL_MAX_RANK] = {};
  uint64_t to_image = 0, to_table = 0;

  // `channels`: of all images. `even`: so that pairs are aligned, rows of the copy are even.
  Phases(const Window& w, uint32_t channels, uint32_t inner, bool even)
      : channels(channels), inner(inner), taps(w.taps()) {
    for (uint32_t d = 0; d < w.rank; d++) {
      image[d] = w.image[d], window[d] = w.window[d];
      stride[d] = w.stride[d], dil[d] = w.dil[d], lo[d] = w.lo[d];
      const auto s = static_cast<uint32_t>(w.stride[d]);
      const uint32_t reach = (w.window[d] - 1) * static_cast<uint32_t>(w.dil[d]);
      extent[d] = w.places[d] + reach / s;
      if (even && d + 1 == w.rank) extent[d] += extent[d] % 2;
      phase[d] = std::min(s, reach + 1);
      cells *= extent[d];
      phases *= phase[d];
    }
  }
};

}  // namespace vulkan
#endif
