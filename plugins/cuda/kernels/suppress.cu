// suppress.cu: non_max_suppression. A row is a class of a batch, with a block.
//   suppress_begin   which boxes are candidates; zeros in the results
//   suppress_rounds  the best candidate of a row is chosen, and dropped with all that it overlaps, until none is left
//   suppress_save    the chosen boxes, row after row
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"

constexpr int kNone = 0x7fffffff;

// ops/suppress.cc. most_bytes: of `most`.
struct Numbers {
  i64 rows, classes, n, size, center, most_bytes;
};
DEVICE const Numbers& numbers_of(const KeelArgs& args) { return *(const Numbers*)args.numbers; }

// Operands boxes, scores, most, overlap, low, found, count, scratch.
DEVICE f32 score_at(const KeelArgs& args, i64 i) { return operand<const f32>(args, 1)[i]; }
// In scratch: whether a box is a candidate, how many boxes of a row are chosen, and which.
DEVICE u32* candidates(const KeelArgs& args) { return operand<u32>(args, 7); }
DEVICE u32* counts(const KeelArgs& args) { return candidates(args) + numbers_of(args).rows * numbers_of(args).n; }
DEVICE u32* chosen(const KeelArgs& args) { return counts(args) + numbers_of(args).rows; }

struct Box {
  f32 low[2], high[2];
};
// Without NaN; an empty box overlaps none.
DEVICE Box box_at(const KeelArgs& args, i64 i) {
  const f32* x = operand<const f32>(args, 0) + 4 * i;
  Box box;
  bool has_nan = false;
  for (int k = 0; k < 2; k++) {
    const f32 a = x[k], b = x[k + 2], half = b / 2;
    box.low[k] = numbers_of(args).center ? a - half : b < a ? b : a;
    box.high[k] = numbers_of(args).center ? a + half : a < b ? b : a;
    has_nan = has_nan || is_nan(a) || is_nan(b) || is_nan(box.low[k]) || is_nan(box.high[k]);
  }
  if (has_nan) box = {{0, 0}, {0, 0}};
  return box;
}
DEVICE f32 area(const Box& b) { return (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]); }
DEVICE bool overlap(const Box& a, const Box& b, f32 limit) {
  Box common;
  for (int k = 0; k < 2; k++) {
    common.low[k] = a.low[k] < b.low[k] ? b.low[k] : a.low[k];
    common.high[k] = b.high[k] < a.high[k] ? b.high[k] : a.high[k];
    if (!(common.high[k] > common.low[k])) return false;
  }
  const f32 both = area(common);
  return both > 0 && both / (area(a) + area(b) - both) > limit;
}

KERNEL(suppress_begin) {
  const Numbers& n = numbers_of(args);
  const i64 boxes = n.rows * n.n, found = n.rows * n.size * 3;
  const f32 low = operand<const f32>(args, 4)[0];
  for (i64 i = first_element(); i < boxes || i < found || i < n.rows || i == 0; i += grid_size()) {
    if (i == 0) operand<i64>(args, 6)[0] = 0;
    if (i < n.rows) counts(args)[i] = 0;
    if (i < found) operand<i64>(args, 5)[i] = 0;
    if (i < boxes) candidates(args)[i] = !is_nan(score_at(args, i)) && (is_nan(low) || score_at(args, i) > low);
  }
}

// Of equal scores the first.
DEVICE int better(const KeelArgs& args, i64 base, int a, int b) {
  if (a == kNone || b == kNone) return a == kNone ? b : a;
  const f32 of_a = score_at(args, base + a), of_b = score_at(args, base + b);
  return of_a > of_b || (of_a == of_b && a < b) ? a : b;
}
// The best candidate of a row, for all threads of the block.
DEVICE int best_of(const KeelArgs& args, i64 row) {
  __shared__ int partial[kThreads];
  const i64 n = numbers_of(args).n;
  const int thread = (int)threadIdx.x;
  int best = kNone;
  for (i64 i = thread; i < n; i += kThreads)
    if (candidates(args)[row * n + i]) best = better(args, row * n, best, (int)i);
  partial[thread] = best;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) partial[thread] = better(args, row * n, partial[thread], partial[thread + half]);
  }
  __syncthreads();
  best = partial[0];
  __syncthreads();
  return best;
}

BLOCK_KERNEL(suppress_rounds) {
  const Numbers& n = numbers_of(args);
  const i64 most = n.most_bytes == 8 ? operand<const i64>(args, 2)[0] : (i64)operand<const i32>(args, 2)[0];
  const f32 limit = operand<const f32>(args, 3)[0];
  for (i64 row = blockIdx.x; row < n.rows; row += gridDim.x) {
    const i64 base = row / n.classes * n.n;
    i64 count = 0;
    while (count < most && count < n.size) {
      const int best = best_of(args, row);
      if (best == kNone) break;
      const Box box = box_at(args, base + best);
      for (i64 i = threadIdx.x; i < n.n; i += kThreads) {
        u32* candidate = candidates(args) + row * n.n + i;
        if (*candidate && (i == best || overlap(box_at(args, base + i), box, limit))) *candidate = 0;
      }
      if (threadIdx.x == 0) chosen(args)[row * n.size + count] = (u32)best;
      count++;
      __syncthreads();
    }
    if (threadIdx.x == 0) counts(args)[row] = (u32)count;
  }
}

KERNEL(suppress_save) {
  const Numbers& n = numbers_of(args);
  for (i64 i = first_element(); i < n.rows * n.size; i += grid_size()) {
    const i64 row = i / n.size, at = i % n.size;
    i64 before = 0;
    for (i64 r = 0; r < row; r++) before += counts(args)[r];
    if (i == n.rows * n.size - 1) operand<i64>(args, 6)[0] = before + counts(args)[row];
    if (at >= counts(args)[row]) continue;
    i64* found = operand<i64>(args, 5) + 3 * (before + at);
    found[0] = row / n.classes;
    found[1] = row % n.classes;
    found[2] = chosen(args)[i];
  }
}
