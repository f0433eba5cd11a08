// shape.h: the geometry of a product.
#pragma once

#include <algorithm>

#include "plugins/cpu/elementwise/broadcast.h"

namespace keel_cpu {

// Whether m rows by a varying transposed matrix are faster as dot products of contiguous elements than by
// panels: each costs the sum of a vector's lanes, so k is at least `depth` times m.
inline constexpr int64_t kDotRows = 16, kDotDepth = 32;
constexpr bool AreDots(int64_t m, int64_t k, int64_t depth = kDotDepth) {
  return m <= kDotRows && k >= depth * m;
}

struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  bool ta = false, tb = false;
  Walk<2> batch;           // steps of a and b in elements; the last dim is a dummy of size 1
  int64_t b_matrices = 0;  // matrices in all of b

  bool IsDots(int64_t depth = kDotDepth) const { return tb && (!ta || m == 1) && AreDots(m, k, depth); }
  int64_t Batches() const { return batch.Rows(); }
  // Whether all matrices of b are multiplied by the same a: then they are like more columns of one.
  bool SharesLeft() const {
    const auto& steps = batch.steps[0];
    return Batches() == b_matrices &&
           std::all_of(steps, steps + batch.rank, [](int64_t s) { return s == 0; });
  }
  int64_t Work() const { return Batches() * m * n * k; }
  // elements read or written
  int64_t Touched() const { return Batches() * m * (k + n) + b_matrices * k * n; }
};

// One product.
inline MatmulShape ProductShape(int64_t m, int64_t n, int64_t k) {
  MatmulShape s;
  s.m = m, s.n = n, s.k = k;
  s.batch.rank = 1;
  s.batch.dims[0] = 1;
  s.batch.steps[0][0] = s.batch.steps[1][0] = 0;
  s.b_matrices = 1;
  return s;
}

}  // namespace keel_cpu
