// window.h: the geometry of a moving window over images: which cells of the image a place of the result
// sees. Shared by pooling and the loops of convolution.
#pragma once

#include <algorithm>
#include <type_traits>

#include "plugins/cpu/common.h"

namespace keel_cpu {

inline constexpr int kMaxImage = KEEL_MAX_RANK - 2;

struct Window {
  static constexpr int64_t kKnown = 16;
  int rank = 0;  // image dims
  int64_t image[kMaxImage] = {}, out[kMaxImage] = {}, window[kMaxImage] = {};
  int64_t stride[kMaxImage] = {}, dil[kMaxImage] = {}, lo[kMaxImage] = {};
  // Of the last dim's first cells, the places that see the image: Complete works them out.
  int64_t firsts[kKnown] = {}, stops[kKnown] = {};

  int64_t Cells(const int64_t* dims) const { return Product(dims, rank); }
  // Cell of the image along dim d for place o and window cell k; outside if not in [0, image[d]).
  int64_t At(int d, int64_t o, int64_t k) const { return o * stride[d] + k * dil[d] - lo[d]; }

  // Cells of the image along dim d from a window's first to its last.
  int64_t Reach(int d) const { return dil[d] * (window[d] - 1) + 1; }

  // Places [first, stop) along dim d whose window cell k lies in the image.
  void Range(int d, int64_t k, int64_t* first, int64_t* stop) const {
    const int64_t shift = lo[d] - k * dil[d];  // o * stride must be in [shift, shift + image)
    const int64_t low = shift <= 0 ? 0 : (shift - 1) / stride[d] + 1;
    const int64_t last = shift + image[d] - 1;
    const int64_t high = last < 0 ? 0 : last / stride[d] + 1;
    *first = std::min(low, out[d]);
    *stop = std::max(*first, std::min(high, out[d]));
  }
};

// Splits a number into indices of dims, row-major.
inline void Unravel(int64_t number, const int64_t* dims, int rank, int64_t* index) {
  for (int d = rank - 1; d >= 0; d--) {
    index[d] = number % dims[d];
    number /= dims[d];
  }
}

// The window of a pooling node over images of dims x, which makes dims y.
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

// Once all sizes are known. One more image dim of size 1 lets images without dims be treated like all others.
inline void Complete(Window* w) {
  if (w->rank == 0) {
    w->rank = 1;
    w->image[0] = w->out[0] = w->window[0] = w->stride[0] = w->dil[0] = 1;
  }
  const int last = w->rank - 1;
  for (int64_t i = 0; i < std::min(Window::kKnown, w->window[last]); i++)
    w->Range(last, i, &w->firsts[i], &w->stops[i]);
}

// For the row of results at `place` (outer image dims), for each window cell, in order, that sees
// anything: f(cell's number, offset in the image of what the first place sees, first place, places, step).
template <class F>
void EachCell(const Window& w, const int64_t* place, F&& f) {
  const int last = w.rank - 1;
  const int64_t outer = Product(w.window, last);
  int64_t k[kMaxImage] = {};
  for (int64_t c = 0; c < outer; c++) {
    int64_t row = 0;
    bool inside = true;
    for (int d = 0; d < last; d++) {
      const int64_t at = w.At(d, place[d], k[d]);
      inside &= at >= 0 && at < w.image[d];
      row = row * w.image[d] + at;
    }
    for (int d = last; d-- > 0 && ++k[d] == w.window[d];) k[d] = 0;
    if (!inside) continue;
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

// f(step), usual ones as constants: then loops over every second element vectorise too.
template <class F>
void WithStep(int64_t step, F&& f) {
  if (step == 1) return f(std::integral_constant<int64_t, 1>());
  if (step == 2) return f(std::integral_constant<int64_t, 2>());
  f(step);
}

}  // namespace keel_cpu
