// scatter.cu: scatter_add and scatter_nd: y[outer, place of row r, inner] is combined with u[outer, r, inner], in
// the order of r. A thread owns one inner element of a range of places and goes through all rows, so the order is
// that of the rows. An index out of range is a fault.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "indices.cuh"

enum Mode { kSet, kAdd, kMul, kMax, kMin };  // ops/scatter.cc

template <class C>
struct Combined {
  static DEVICE C of(i64 mode, C old, C now) {
    if (mode == kAdd) return keel_add(old, now);
    if (mode == kMul) return keel_mul(old, now);
    if (mode == kMax) return old < now ? now : old;
    return mode == kMin && old < now ? old : now;
  }
};
template <class C>
struct CombinedFloats {
  static DEVICE C of(i64 mode, C old, C now) {
    if (mode == kAdd) return old + now;
    if (mode == kMul) return old * now;
    if (mode == kMax) return keel_maximum(old, now);
    return mode == kMin ? keel_minimum(old, now) : now;
  }
};
template <>
struct Combined<f32> : CombinedFloats<f32> {};
template <>
struct Combined<f64> : CombinedFloats<f64> {};

// Numbers: outer, places, inner, rows, indices of a row, places of a thread, threads for all places, bytes of an
// index, mode, 1 with x; bounds and strides of the indices. Operands x (or any), index, u, result, scratch.
// Without x, sums are kept in scratch, so that half floats are rounded once.
struct Numbers {
  i64 outer, places, inner, rows, k, share, shares, index_bytes, mode, from_x;
  i64 more[kMostNumbers - 10];
};

// -1: an index is out of range.
DEVICE i64 place_of(const KeelArgs& args, const Numbers& n, i64 row) {
  i64 place = 0;
  for (i64 d = 0; d < n.k; d++) {
    const i64 at = row * n.k + d;
    const i64 index = index_at(args, 1, n.index_bytes, at);
    if (is_out(args, index, n.more[d])) return -1;
    place += index * n.more[n.k + d];
  }
  return place;
}

template <class S>
DEVICE void scatter(const KeelArgs& args) {
  typedef Compute<S> C;
  const Numbers& n = *(const Numbers*)args.numbers;
  S* y = operand<S>(args, 3);
  C* sums = operand<C>(args, 4);
  for (i64 i = first_element(); i < n.outer * n.inner * n.shares; i += grid_size()) {
    const i64 inner = i % n.inner, first = i / n.inner % n.shares * n.share, outer = i / (n.inner * n.shares);
    const i64 end = first + n.share < n.places ? first + n.share : n.places, base = outer * n.places * n.inner + inner;
    for (i64 place = first; place < end; place++) {
      const i64 at = base + place * n.inner;
      if (n.from_x)
        y[at] = operand<const S>(args, 0)[at];
      else
        sums[at] = (C)0;
    }
    for (i64 row = 0; row < n.rows; row++) {
      const i64 place = place_of(args, n, row), at = base + place * n.inner;
      if (place < first || place >= end) continue;
      const C now = Number<S>::from(operand<const S>(args, 2)[(outer * n.rows + row) * n.inner + inner]);
      if (n.from_x)
        y[at] = Number<S>::to(Combined<C>::of(n.mode, Number<S>::from(y[at]), now));
      else
        sums[at] = Combined<C>::of(kAdd, sums[at], now);
    }
    for (i64 place = first; place < end && !n.from_x; place++)
      y[base + place * n.inner] = Number<S>::to(sums[base + place * n.inner]);
  }
}

#define DTYPE(S, name) \
  KERNEL(scatter_##name) { scatter<S>(args); }
#include "dtypes.inc"
