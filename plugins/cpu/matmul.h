// matmul.h: the geometry of a matmul node, shared by its two impls.
#pragma once

#include "broadcast.h"
#include "onednn.h"

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
// Operand 0 or 1 as oneDNN sees it: the batch dims (1 where it is repeated), then rows and columns.
dnnl::memory::desc MatmulOperand(const MatmulShape& shape, int which,
                                 dnnl::memory::data_type type = dnnl::memory::data_type::f32);

// The impls' own prepares; both take any matmul of their dtypes.
keel_rc PrepareMatmulLoops(const Node& node, const MatmulShape& shape, keel_launch* launch);
keel_rc PrepareMatmulOneDnn(const Node& node, const MatmulShape& shape, keel_launch* launch);

}  // namespace keel_cpu
