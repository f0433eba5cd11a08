// lines.cu: ops along lines x[outer, :, inner]: arg_max, arg_min, cumsum.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"

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

// Operands x, result. Numbers: lines, size, inner, 1 for arg_max, 1 for the last of equals, threads for a line
// (1 or a block). ops/lines.cc
template <class S>
DEVICE void arg(const KeelArgs& args) {
  __shared__ Best<S> parts[kThreads];
  const i64 *n = args.numbers, size = n[1], inner = n[2], group = n[5];
  const bool most = n[3] != 0, last = n[4] != 0;
  const unsigned thread = threadIdx.x;
  const i64 first = group == 1 ? first_element() : (i64)blockIdx.x, step = group == 1 ? grid_size() : gridDim.x;
  for (i64 line = first; line < n[0]; line += step) {
    const S* x = operand<const S>(args, 0) + line / inner * size * inner + line % inner;
    Best<S> best = {(Compute<S>)0, -1};
    for (i64 k = group == 1 ? 0 : thread; k < size; k += group)
      best = better<S>(best, {Number<S>::from(x[k * inner]), k}, most, last);
    for (unsigned half = (unsigned)group / 2; half > 0; half /= 2) {
      parts[thread] = best;
      __syncthreads();
      if (thread < half) best = better<S>(best, parts[thread + half], most, last);
      __syncthreads();
    }
    if (group == 1 || thread == 0) operand<i64>(args, 1)[line] = best.at;
  }
}

DEVICE f32 sum_of(f32 a, f32 b) { return a + b; }
DEVICE f64 sum_of(f64 a, f64 b) { return a + b; }
template <class T>
DEVICE T sum_of(T a, T b) {
  return keel_add(a, b);
}
// Operands x, result. Numbers: lines, size, inner, 1 if exclusive, 1 from the end. A thread for each line.
template <class S>
DEVICE void cumsum(const KeelArgs& args) {
  const i64 *n = args.numbers, size = n[1], inner = n[2];
  for (i64 line = first_element(); line < n[0]; line += grid_size()) {
    const i64 base = line / inner * size * inner + line % inner;
    Compute<S> sum = (Compute<S>)0;
    for (i64 k = 0; k < size; k++) {
      const i64 at = base + (n[4] ? size - 1 - k : k) * inner;
      const Compute<S> next = sum_of(sum, Number<S>::from(operand<const S>(args, 0)[at]));
      operand<S>(args, 1)[at] = Number<S>::to(n[3] ? sum : next);
      sum = next;
    }
  }
}

#define DTYPE(S, name)                          \
  BLOCK_KERNEL(arg_##name) { arg<S>(args); }    \
  KERNEL(cumsum_##name) { cumsum<S>(args); }
#define ONLY_NUMBERS
#include "dtypes.inc"
