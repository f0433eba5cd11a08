// compare_loops.cc: compiles compare_loops.inc per SIMD level and selects one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "plugins/cpu/elementwise/binary_loops.h"
#include "plugins/cpu/simd/half.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/elementwise/compare_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const BinaryTable& Comparisons() { return *KEEL_PICK(kComparisons); }

}  // namespace keel_cpu
