// matmul.h: the geometry of a matmul node, shared by its two impls.
#pragma once

#include "broadcast.h"

namespace keel_cpu {

struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  bool ta = false, tb = false;
  Walk<2> batch;           // steps in elements of a and b; its last dim is an inert 1
  int64_t b_matrices = 0;  // in all of b

  int64_t Batches() const { return batch.Rows(); }
  int64_t Work() const { return Batches() * m * n * k; }
};
MatmulShape ReadMatmul(const Node& node);

// The impls' own prepares; both take any matmul of their dtypes.
keel_rc PrepareMatmulLoops(const Node& node, const MatmulShape& shape, keel_launch* launch);
keel_rc PrepareMatmulOneDnn(const Node& node, const MatmulShape& shape, keel_launch* launch);

}  // namespace keel_cpu
