// dense.cc: compiles dense.inc per SIMD level and selects one.
#include "plugins/cpu/linear_algebra/dense.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/linear_algebra/dense.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const DenseTable& Dense() { return *KEEL_PICK(kDense); }

}  // namespace keel_cpu
