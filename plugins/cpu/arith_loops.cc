// arith_loops.cc: compiles arith_loops.inc per SIMD level and picks one.
#include <cmath>
#include <type_traits>

#include "binary_loops.h"
#include "half.h"
#include "simd.h"

#define KEEL_LOOPS "arith_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const BinaryTable& Arithmetic() { return *KEEL_PICK(kArithmetic); }

}  // namespace keel_cpu
