// small.h: products of small matrices whose rows fit a vector register: no packing, no scratch.
#pragma once

#include <span>

#include "plugins/cpu/matmul/matmul.h"

namespace keel_cpu {

// False: not for this shape and dtype; the launch is as it was.
bool PrepareMatmulSmall(keel_dt dtype, const MatmulShape& shape, keel_launch* launch);

// Shared by the kernels.
struct SmallShape {
  int64_t m, n, k;
  int64_t whole;  // how many rows of b have a vector's width from their beginning to the end of b
};
struct SmallMatmul {
  keel_dt dtype;
  int64_t lanes;  // most columns
  Run run;        // its state: a SmallShape
};
std::span<const SmallMatmul> IfmaMatmuls();  // none where the machine has no such instruction

}  // namespace keel_cpu
