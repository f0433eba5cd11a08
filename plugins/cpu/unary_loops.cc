// unary_loops.cc: compiles unary_loops.inc per SIMD level and picks one.
#include "unary_loops.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "half.h"
#include "simd.h"

#define KEEL_LOOPS "unary_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const UnaryTable& Unary() { return *KEEL_PICK(kUnary); }

}  // namespace keel_cpu
