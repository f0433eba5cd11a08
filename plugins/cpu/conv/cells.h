// cells.h: the cells of a channels-last image that a result of a convolution sees.
#pragma once

#include "plugins/cpu/conv/conv.h"

namespace keel_cpu {

// Where the window of a result begins.
struct Place {
  int64_t image, at[kMaxImage];
};
inline Place PlaceOf(const Conv& s, int64_t result) {
  const int64_t cells = s.w.Cells(s.w.out);
  Place p = {result / cells, {}};
  Unravel(result % cells, s.w.out, s.w.rank, p.at);
  return p;
}

// Whether a result sees the cell at its own place only.
inline bool IsPointwise(const Conv& s) {
  return s.w.Cells(s.w.window) == 1 && s.groups == 1 &&
         std::equal(s.w.image, s.w.image + s.w.rank, s.w.out) &&
         std::all_of(s.w.lo, s.w.lo + s.w.rank, [](int64_t lo) { return lo == 0; });
}

// Calls f(first cell of the window, image offset of the cell that it sees; negative: outside, cells) for runs
// of cells along the last dim, which are all inside or all outside the image.
template <class F>
void EachRun(const Window& w, const Place& place, F&& f) {
  const int last = w.rank - 1;
  const int64_t n = w.window[last], outer = Product(w.window, last);
  int64_t first = 0, k[kMaxImage] = {};
  while (first < n && w.At(last, place.at[last], first) < 0) first++;
  int64_t stop = first;
  while (stop < n && w.At(last, place.at[last], stop) < w.image[last]) stop++;
  for (int64_t c = 0; c < outer; c++) {
    const int64_t row = SeenRow(w, place.at, k);
    for (int d = last; d-- > 0 && ++k[d] == w.window[d];) k[d] = 0;
    if (row < 0 || first >= stop) {
      f(c * n, -1, n);
      continue;
    }
    if (first > 0) f(c * n, -1, first);
    f(c * n + first, row * w.image[last] + w.At(last, place.at[last], first), stop - first);
    if (stop < n) f(c * n + stop, -1, n - stop);
  }
}

}  // namespace keel_cpu
