// window.h: windows over images, as pools and convolutions have them. Sizes and steps are of the types that
// the kernels read.
#ifndef KEEL_PLUGIN_WINDOW_H
#define KEEL_PLUGIN_WINDOW_H
#include <algorithm>

#include "node.h"

namespace keel::plugin {

template <class Size, class Step>
struct Window {
  Size rank = 0, image[KEEL_MAX_RANK] = {}, window[KEEL_MAX_RANK] = {}, places[KEEL_MAX_RANK] = {};
  Step stride[KEEL_MAX_RANK] = {}, dil[KEEL_MAX_RANK] = {}, lo[KEEL_MAX_RANK] = {}, hi[KEEL_MAX_RANK] = {};

  Window() = default;
  // Image and places are tensors [n, channels, dims]; cells: the window's dims. hi stays 0.
  Window(Node& node, const keel_tensor& images, const int64_t* cells, const keel_tensor& results)
      : rank(static_cast<Size>(images.ndim - 2)) {
    const auto strides = node.List("stride"), dils = node.List("dil"), los = node.List("lo");
    for (Size d = 0; d < rank && !node.rc; d++) {
      image[d] = static_cast<Size>(images.shape[d + 2]);
      window[d] = static_cast<Size>(cells[d]);
      places[d] = static_cast<Size>(results.shape[d + 2]);
      stride[d] = static_cast<Step>(strides[d]);
      dil[d] = static_cast<Step>(dils[d]);
      lo[d] = static_cast<Step>(los[d]);
    }
  }
  static Size Product(const Size* v, Size n) {
    Size all = 1;
    for (Size i = 0; i < n; i++) all *= v[i];
    return all;
  }
  Size pixels() const { return Product(image, rank); }
  Size taps() const { return Product(window, rank); }
  Size windows() const { return Product(places, rank); }
  // Window cell and image cell are one: no padding, strides of 1, as many places as pixels.
  bool IsPoints() const {
    auto ones = [this](const auto* v) {
      return std::all_of(v, v + rank, [](auto each) { return each == 1; });
    };
    return ones(window) && ones(stride) && std::equal(image, image + rank, places) &&
           std::all_of(lo, lo + rank, [](Step each) { return each == 0; });
  }
};

// Sizes of a convolution of x [n, channels, image] by w [outputs, channels of a group, window] to y [n,
// outputs, places]. ins and outs: channels of a group.
template <class Size, class Step>
struct ConvSizes {
  Size images = 0, groups = 1, ins = 0, outs = 0, pixels = 0, windows = 0, taps = 0;
  Window<Size, Step> window;

  ConvSizes() = default;
  ConvSizes(Node& node, const keel_tensor& x, const keel_tensor& w, const keel_tensor& y)
      : window(node, x, w.shape + 2, y) {
    const int64_t all = node.Int("groups");
    if (node.rc) return;
    images = static_cast<Size>(x.shape[0]), groups = static_cast<Size>(all);
    ins = static_cast<Size>(w.shape[1]), outs = static_cast<Size>(w.shape[0]) / groups;
    pixels = window.pixels(), windows = window.windows(), taps = window.taps();
  }
};

}  // namespace keel::plugin
#endif
