// pool.cu: a thread for each window: its maximum, the index of that, or its mean. Without cells: the lowest value,
// -1, NaN. Adjacent threads have adjacent windows, so loads of a warp share cache lines.
#define LEAST_BLOCKS 4  // loads need many threads in flight
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"

enum Kind { kMax, kIndex, kMean };  // ops/pool.cc

// keel::plugin::Window. ops/pool.cc makes the rank 2 or more.
struct Window {
  i64 rank, image[8], window[8], places[8], stride[8], dil[8], lo[8], hi[8];
};
// Operand x, result. kIndex: option is column_major; kMean: count_pad.
struct Numbers {
  i64 count, kind, option, pixels, windows, outer_taps;
  Window of;
};

// The offset in the dims before the last two, for cell `tap` of the window at `place`; -1:
// outside.
DEVICE i64 outer_image(const Window& w, i64 place, i64 tap) {
  i64 at = 0, step = 1;
  for (i64 d = w.rank - 3; d >= 0; d--) {
    const i64 z = place % w.places[d] * w.stride[d] + tap % w.window[d] * w.dil[d] - w.lo[d];
    if (z < 0 || z >= w.image[d]) return -1;
    at += z * step;
    step *= w.image[d];
    place /= w.places[d], tap /= w.window[d];
  }
  return at;
}
// Calls f with the offset of each image cell of the window, in the order of its cells. Dims before the last two are
// rare: only they cost divisions for each cell.
template <class F>
DEVICE void each_cell(const Numbers& n, i64 place, F f) {
  const Window& w = n.of;
  const i64 r = w.rank - 2, c = w.rank - 1, rows = w.image[r], columns = w.image[c];
  const i64 row0 = place / w.places[c] % w.places[r] * w.stride[r] - w.lo[r];
  const i64 column0 = place % w.places[c] * w.stride[c] - w.lo[c], outer = place / (w.places[r] * w.places[c]);
  NO_UNROLL for (i64 tap = 0; tap < n.outer_taps; tap++) {
    const i64 image = outer_image(w, outer, tap);
    if (image < 0) continue;
    NO_UNROLL for (i64 i = 0, row = row0; i < w.window[r]; i++, row += w.dil[r]) {
      if (row < 0 || row >= rows) continue;
      NO_UNROLL for (i64 j = 0, column = column0; j < w.window[c]; j++, column += w.dil[c])
        if (column >= 0 && column < columns) f((image * rows + row) * columns + column);
    }
  }
}

// The offset of the maximum, the first of equals, or of the first NaN; -1: no cells.
template <class S>
DEVICE i64 greatest(const Numbers& n, const S* x, i64 place) {
  i64 best = -1;
  Compute<S> highest = (Compute<S>)0;
  each_cell(n, place, [&](i64 at) {
    const Compute<S> here = Number<S>::from(x[at]);
    if (best >= 0 && (is_nan(highest) || !(is_nan(here) || highest < here))) return;
    best = at, highest = here;
  });
  return best;
}
// The same cell with the first image dim varying fastest.
DEVICE i64 column_major(const Window& w, i64 offset) {
  i64 at = 0, step = 1, inner = 1;
  for (i64 d = 0; d < w.rank; d++) inner *= w.image[d];
  for (i64 d = 0; d < w.rank; d++) {
    inner /= w.image[d];
    at += offset / inner % w.image[d] * step;
    step *= w.image[d];
  }
  return at;
}
// Cells of the window in the image or in its padding lo and hi, not beyond.
DEVICE i64 padded_cells(const Window& w, i64 place) {
  i64 all = 1;
  for (i64 d = w.rank - 1; d >= 0; d--) {
    const i64 left = w.image[d] + w.hi[d] - (place % w.places[d] * w.stride[d] - w.lo[d]);
    const i64 cells = left > 0 ? (left + w.dil[d] - 1) / w.dil[d] : 0;
    all *= cells < w.window[d] ? cells : w.window[d];
    place /= w.places[d];
  }
  return all;
}
template <class S>
DEVICE S mean(const Numbers& n, const S* x, i64 place) {
  Compute<S> sum = (Compute<S>)0;
  i64 cells = 0;
  each_cell(n, place, [&](i64 at) { sum += Number<S>::from(x[at]), cells++; });
  return Number<S>::to(sum / (Compute<S>)(n.option ? padded_cells(n.of, place) : cells));
}

template <class S>
DEVICE void pool_maxima(const KeelArgs& args) {
  const Numbers& n = *(const Numbers*)args.numbers;
  for (i64 i = first_element(); i < n.count; i += grid_size()) {
    const i64 first = i / n.windows * n.pixels, best = greatest(n, operand<const S>(args, 0) + first, i % n.windows);
    if (n.kind == kMax)
      operand<S>(args, 1)[i] = best < 0 ? Number<S>::to(Ends<Compute<S>>::least()) : operand<const S>(args, 0)[first + best];
    else
      operand<i64>(args, 1)[i] = best < 0 ? -1 : first + (n.option ? column_major(n.of, best) : best);
  }
}
template <class S>
DEVICE void pool_means(const KeelArgs& args) {
  const Numbers& n = *(const Numbers*)args.numbers;
  for (i64 i = first_element(); i < n.count; i += grid_size())
    operand<S>(args, 1)[i] = mean(n, operand<const S>(args, 0) + i / n.windows * n.pixels, i % n.windows);
}

#define DTYPE(S, name) \
  KERNEL(pool_##name) { pool_maxima<S>(args); }
#define ONLY_NUMBERS
#include "dtypes.inc"
KERNEL(mean_pool_f16) { pool_means<f16>(args); }
KERNEL(mean_pool_bf16) { pool_means<bf16>(args); }
KERNEL(mean_pool_f32) { pool_means<f32>(args); }
KERNEL(mean_pool_f64) { pool_means<f64>(args); }
