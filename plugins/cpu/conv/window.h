// window.h: the geometry of a moving window over images: which image cells a result position sees. Shared by
// pooling and the convolution loops.
#pragma once

#include <algorithm>

#include "plugins/cpu/common.h"

namespace keel_cpu {

inline constexpr int kMaxImage = KEEL_MAX_RANK - 2;

struct Window {
  static constexpr int64_t kKnown = 16;
  int rank = 0;  // image dims
  int64_t image[kMaxImage] = {}, out[kMaxImage] = {}, window[kMaxImage] = {};
  int64_t stride[kMaxImage] = {}, dil[kMaxImage] = {}, lo[kMaxImage] = {};
  // For the first cells of the last dim: the positions that see the image. Set by Complete.
  int64_t firsts[kKnown] = {}, stops[kKnown] = {};

  int64_t Cells(const int64_t* dims) const { return Product(dims, rank); }
  // The image cell along dim d for position o and window cell k; may be outside [0, image[d]).
  int64_t At(int d, int64_t o, int64_t k) const { return o * stride[d] + k * dil[d] - lo[d]; }

  // The extent of a window along dim d, in image cells.
  int64_t Reach(int d) const { return dil[d] * (window[d] - 1) + 1; }

  // Positions [first, stop) along dim d whose window cell k is within the image.
  void Range(int d, int64_t k, int64_t* first, int64_t* stop) const {
    const int64_t shift = lo[d] - k * dil[d];  // o * stride must be in [shift, shift + image)
    const int64_t low = shift <= 0 ? 0 : (shift - 1) / stride[d] + 1;
    const int64_t last = shift + image[d] - 1;
    const int64_t high = last < 0 ? 0 : last / stride[d] + 1;
    *first = std::min(low, out[d]);
    *stop = std::max(*first, std::min(high, out[d]));
  }
};

// Splits a row-major index into indices of dims.
inline void Unravel(int64_t number, const int64_t* dims, int rank, int64_t* index) {
  for (int d = rank - 1; d >= 0; d--) {
    index[d] = number % dims[d];
    number /= dims[d];
  }
}

// The window of a pooling node from images of dims x to results of dims y.
inline Window ReadWindow(const Node& node, const Dims& x, const Dims& y) {
  const Dims window = node.List("window"), stride = node.List("stride"), dil = node.List("dil");
  const Dims lo = node.List("lo");
  Window w;
  w.rank = static_cast<int>(x.size()) - 2;
  for (size_t d = 0; d + 2 < x.size(); d++) {
    w.image[d] = x[d + 2];
    w.out[d] = y[d + 2];
    w.window[d] = window[d];
    w.stride[d] = stride[d];
    w.dil[d] = dil[d];
    w.lo[d] = lo[d];
  }
  return w;
}

// Call it once all sizes are set. Images without dims get one dim of size 1.
inline void Complete(Window* w) {
  if (w->rank == 0) {
    w->rank = 1;
    w->image[0] = w->out[0] = w->window[0] = w->stride[0] = w->dil[0] = 1;
  }
  const int last = w->rank - 1;
  for (int64_t i = 0; i < std::min(Window::kKnown, w->window[last]); i++)
    w->Range(last, i, &w->firsts[i], &w->stops[i]);
}

// The row of cells of the last dim, numbered through the image, that a result at `place` sees at window place
// k (both of the outer dims); -1: outside.
inline int64_t SeenRow(const Window& w, const int64_t* place, const int64_t* k) {
  int64_t row = 0;
  for (int d = 0; d + 1 < w.rank; d++) {
    const int64_t at = w.At(d, place[d], k[d]);
    if (at < 0 || at >= w.image[d]) return -1;
    row = row * w.image[d] + at;
  }
  return row;
}

// For the row of results at `place` (outer image dims), calls f for each window cell, in order, that sees any
// image cell: f(index of the window cell, image offset of the cell that the first position sees, first
// position, positions, step).
template <class F>
void EachCell(const Window& w, const int64_t* place, F&& f) {
  const int last = w.rank - 1;
  const int64_t outer = Product(w.window, last);
  int64_t k[kMaxImage] = {};
  for (int64_t c = 0; c < outer; c++) {
    const int64_t row = SeenRow(w, place, k);
    for (int d = last; d-- > 0 && ++k[d] == w.window[d];) k[d] = 0;
    if (row < 0) continue;
    for (int64_t i = 0; i < w.window[last]; i++) {
      int64_t first, stop;
      if (i < Window::kKnown)
        first = w.firsts[i], stop = w.stops[i];
      else
        w.Range(last, i, &first, &stop);
      if (first < stop)
        f(c * w.window[last] + i, row * w.image[last] + w.At(last, first, i), first, stop - first,
          w.stride[last]);
    }
  }
}

}  // namespace keel_cpu
