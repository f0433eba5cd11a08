// phases.h: the padded copy of a convolution's image that shaders/product.comp reads.
#ifndef KEEL_PLUGINS_VULKAN_PHASES_H
#define KEEL_PLUGINS_VULKAN_PHASES_H
#include <algorithm>

#include "product.h"
#include "window.h"

namespace vulkan {

// As shaders/phases.comp reads it.
struct Phases {
  uint32_t channels, cells, phases, inner, taps;
  uint32_t of_window[KEEL_MAX_RANK] = {}, dilation[KEEL_MAX_RANK] = {};
  uint64_t to_image = 0, to_table = 0;
  Window copied;  // its places: cells of a phase; its cells: phases that the window reads

  // `channels`: of all images. `even`: so that pairs are aligned, rows of the copy are even.
  Phases(const Window& w, uint32_t channels, uint32_t inner, bool even)
      : channels(channels), inner(inner), taps(w.taps()), copied(w) {
    for (uint32_t d = 0; d < w.rank; d++) {
      of_window[d] = w.window[d], dilation[d] = static_cast<uint32_t>(w.dil[d]);
      const uint32_t stride = static_cast<uint32_t>(w.stride[d]), reach = (w.window[d] - 1) * dilation[d];
      copied.places[d] += reach / stride;
      if (even && d + 1 == w.rank) copied.places[d] += copied.places[d] % 2;
      copied.window[d] = std::min(stride, reach + 1);
      copied.dil[d] = 1;
    }
    cells = copied.windows(), phases = copied.taps();
  }
};

}  // namespace vulkan
#endif
