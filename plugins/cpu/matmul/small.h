// small.h: products of small matrices whose rows fit a vector register or two: no packing, no workspace.
#pragma once

#include <span>

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

// False: unsupported shape or dtype; the launch is unchanged.
bool PrepareMatmulSmall(keel_dt dtype, const MatmulShape& shape, keel_launch* launch);

// Shared by the kernels.
struct SmallShape {
  int64_t m, n, k;
  int64_t whole;  // rows of b from whose start a full vector can be loaded within b
};
struct SmallMatmul {
  keel_dt dtype;
  int64_t lanes;  // maximum columns
  Run run;        // its launch state is a SmallShape
};
std::span<const SmallMatmul> IfmaMatmuls();  // empty without IFMA

}  // namespace keel_cpu
