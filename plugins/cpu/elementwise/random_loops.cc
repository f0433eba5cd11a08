// random_loops.cc: compiles random_loops.inc per SIMD level and selects one.
#include "plugins/cpu/elementwise/random_loops.h"

#include <bit>
#include <cmath>
#include <cstddef>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/elementwise/random_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const RandomLoops& Random() { return *KEEL_PICK(kRandom); }

}  // namespace keel_cpu
