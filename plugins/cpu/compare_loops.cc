// compare_loops.cc: compiles compare_loops.inc per SIMD level and picks one.
#include <cmath>
#include <type_traits>

#include "binary_loops.h"
#include "half.h"
#include "simd.h"

#define KEEL_LOOPS "compare_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const BinaryTable& Comparisons() { return *KEEL_PICK(kComparisons); }

}  // namespace keel_cpu
