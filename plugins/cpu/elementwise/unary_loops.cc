// unary_loops.cc: compiles unary_loops.inc per SIMD level and selects one.
#include "plugins/cpu/elementwise/unary_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "plugins/cpu/simd/half.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/elementwise/unary_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const UnaryTable& Unary() { return *KEEL_PICK(kUnary); }

}  // namespace keel_cpu
