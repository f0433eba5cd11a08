// arith_loops.cc: compiles arith_loops.inc per SIMD level and selects one.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "plugins/cpu/elementwise/binary_loops.h"
#include "plugins/cpu/simd/half.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/elementwise/arith_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const BinaryTable& Arithmetic() { return *KEEL_PICK(kArithmetic); }

}  // namespace keel_cpu
