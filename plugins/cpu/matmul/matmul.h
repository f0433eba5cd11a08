// matmul.h: the geometry of a matmul node, shared by our own loops and by regions.
#pragma once

#include "plugins/cpu/elementwise/broadcast.h"

namespace keel_cpu {

struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  bool ta = false, tb = false;
  Walk<2> batch;           // steps in elements of a and b; its last dim is an inert 1
  int64_t b_matrices = 0;  // in all of b

  int64_t Batches() const { return batch.Rows(); }
  int64_t Work() const { return Batches() * m * n * k; }
  int64_t Touched() const { return Batches() * m * (k + n) + b_matrices * k * n; }  // elements
};
MatmulShape ReadMatmul(const Node& node);

// Small f32 products are left to our own loops.
bool PaysOneDnn(const MatmulShape& shape);

}  // namespace keel_cpu
