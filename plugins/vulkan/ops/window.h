// window.h: the numbers of windows over images, as shaders/window.glsl reads them.
#ifndef KEEL_PLUGINS_VULKAN_WINDOW_H
#define KEEL_PLUGINS_VULKAN_WINDOW_H
#include <algorithm>

#include "shader_op.h"

namespace vulkan {

struct Window {
  uint32_t rank = 0, image[KEEL_MAX_RANK] = {}, window[KEEL_MAX_RANK] = {}, places[KEEL_MAX_RANK] = {};
  int32_t stride[KEEL_MAX_RANK] = {}, dil[KEEL_MAX_RANK] = {}, lo[KEEL_MAX_RANK] = {}, hi[KEEL_MAX_RANK] = {};

  Window() = default;
  // Image and places are tensors [n, channels, dims]; cells: the window's dims.
  Window(Op& op, const keel_tensor& images, const int64_t* cells, const keel_tensor& results)
      : rank(static_cast<uint32_t>(images.ndim - 2)) {
    const auto strides = op.List("stride"), dils = op.List("dil"), los = op.List("lo");
    for (uint32_t d = 0; d < rank && !op.rc; d++) {
      image[d] = static_cast<uint32_t>(images.shape[d + 2]);
      window[d] = static_cast<uint32_t>(cells[d]);
      places[d] = static_cast<uint32_t>(results.shape[d + 2]);
      stride[d] = static_cast<int32_t>(strides[d]);
      dil[d] = static_cast<int32_t>(dils[d]);
      lo[d] = static_cast<int32_t>(los[d]);
    }
  }
  static uint32_t Product(const uint32_t* v, uint32_t n) {
    uint32_t all = 1;
    for (uint32_t i = 0; i < n; i++) all *= v[i];
    return all;
  }
  uint32_t pixels() const { return Product(image, rank); }
  uint32_t taps() const { return Product(window, rank); }
  uint32_t windows() const { return Product(places, rank); }
  // Whether shaders/window.glsl may divide in f32.
  bool IsSmall(uint64_t other = 0) const {
    return std::max<uint64_t>({other, pixels(), windows(), taps()}) < 1 << 20;
  }
  // Window cell and image cell are one: no padding, strides of 1, as many places as pixels.
  bool IsPoints() const {
    auto ones = [this](const auto* v) {
      return std::all_of(v, v + rank, [](auto each) { return each == 1; });
    };
    return ones(window) && ones(stride) && std::equal(image, image + rank, places) &&
           std::all_of(lo, lo + rank, [](int32_t each) { return each == 0; });
  }
};

}  // namespace vulkan
#endif
