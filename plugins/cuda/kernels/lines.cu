// lines.cu: ops along lines x[outer, :, inner]: arg_max, arg_min, cumsum, linear_recurrence.
#define LEAST_BLOCKS 4
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "vectors.cuh"
#include "groups.cuh"

template <class S>
struct Best {
  Compute<S> value;
  i64 at;  // -1: none
};
// A total order; NaN is preferred to all others.
template <class S>
DEVICE Best<S> better(Best<S> a, Best<S> b, bool most, bool last) {
  if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
  if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
  if (a.value < b.value || a.value > b.value) return most == (a.value > b.value) ? a : b;
  return last == (a.at > b.at) ? a : b;
}

template <class S>
DEVICE Best<S> from_lane(Best<S> mine, int distance) {
  return {from_lane(mine.value, distance), from_lane(mine.at, distance)};
}

// The best of vectors rank, rank + threads ... of a line, several of which are on their way.
template <class S, int W>
DEVICE Best<S> best_of(const S* x, i64 size, i64 inner, Group group, bool most, bool last) {
  constexpr int kAhead = sizeof(S) > 4 ? 2 : 4;  // as registers allow
  const i64 step = (i64)group.size * W;
  Best<S> best = {(Compute<S>)0, -1};
  NO_UNROLL for (i64 first = group.rank() * W; first < size; first += kAhead * step) {
    Pack<S, W, 1> held[kAhead];
    UNROLL for (int a = 0; a < kAhead; a++)
      if (first + a * step < size) held[a].load(0, x + (first + a * step) * inner);
    UNROLL for (int a = 0; a < kAhead; a++)
      if (first + a * step < size)
        UNROLL for (int v = 0; v < W; v++)
          best = better<S>(best, {Number<S>::from(held[a].get(v)), first + a * step + v}, most, last);
  }
  return best;
}
// Operands x, result. Numbers: lines, size, inner, 1 for arg_max, 1 for the last of equals, threads for a line, 1 for rows that
// are multiples of vectors. ops/lines.cc
template <class S>
DEVICE void arg(const KeelArgs& args) {
  constexpr int kWide = sizeof(S) == 1 ? 8 : 16 / (int)sizeof(S);
  const i64 *n = args.numbers, inner = n[2];
  const bool most = n[3] != 0, last = n[4] != 0;
  each_row(n[0], n[5], [&](i64 line, Group group) {
    const i64 size = line < n[0] ? n[1] : 0, outer = quotient(line, inner);
    const S* x = operand<const S>(args, 0) + (outer * n[1] - outer) * inner + line;
    Best<S> best = n[6] ? best_of<S, kWide>(x, size, inner, group, most, last) : best_of<S, 1>(x, size, inner, group, most, last);
    best = group.combine(best, [&](Best<S> a, Best<S> b) { return better<S>(a, b, most, last); });
    if (group.rank() == 0 && line < n[0]) operand<i64>(args, 1)[line] = best.at;
  });
}

DEVICE f32 sum_of(f32 a, f32 b) { return a + b; }
DEVICE f64 sum_of(f64 a, f64 b) { return a + b; }
template <class T>
DEVICE T sum_of(T a, T b) {
  return keel_add(a, b);
}
// Calls step(now, at, first) for each element of each line in order, or from the end: now is 0 before the first one; at is the
// element's place. A thread for each line.
template <class S, class F>
DEVICE void along_lines(i64 lines, i64 size, i64 inner, bool reverse, F step) {
  for (i64 line = first_element(); line < lines; line += grid_size()) {
    const i64 base = line / inner * size * inner + line % inner;
    Compute<S> now = (Compute<S>)0;
    for (i64 k = 0; k < size; k++) step(now, base + (reverse ? size - 1 - k : k) * inner, k == 0);
  }
}
// Operands x, result. Numbers: lines, size, inner, 1 if exclusive, 1 from the end.
template <class S>
DEVICE void cumsum(const KeelArgs& args) {
  const i64* n = args.numbers;
  along_lines<S>(n[0], n[1], n[2], n[4] != 0, [&](Compute<S>& sum, i64 at, bool) {
    const Compute<S> next = sum_of(sum, Number<S>::from(operand<const S>(args, 0)[at]));
    operand<S>(args, 1)[at] = Number<S>::to(n[3] ? sum : next);
    sum = next;
  });
}
// Operands a, b, result. Numbers: lines, size, inner, 1 from the end.
template <class S>
DEVICE void recurrence(const KeelArgs& args) {
  const i64* n = args.numbers;
  along_lines<S>(n[0], n[1], n[2], n[3] != 0, [&](Compute<S>& y, i64 at, bool first) {
    const Compute<S> b = Number<S>::from(operand<const S>(args, 1)[at]);
    y = first ? b : multiply_add(Number<S>::from(operand<const S>(args, 0)[at]), y, b);
    operand<S>(args, 2)[at] = Number<S>::to(y);
  });
}

#define DTYPE(S, name)                          \
  BLOCK_KERNEL(arg_##name) { arg<S>(args); }    \
  KERNEL(cumsum_##name) { cumsum<S>(args); }    \
  KERNEL(recurrence_##name) { recurrence<S>(args); }
#define ONLY_NUMBERS
#include "dtypes.inc"
