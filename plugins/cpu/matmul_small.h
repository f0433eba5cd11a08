// matmul_small.h: products of small matrices whose rows fit a vector register: no packing, no scratch.
#pragma once

#include "matmul.h"

namespace keel_cpu {

// False: not for this shape and dtype; the launch is as it was.
bool PrepareMatmulSmall(keel_dt dtype, const MatmulShape& shape, keel_launch* launch);

}  // namespace keel_cpu
