// integer_loops.cc: compiles integer_loops.inc per SIMD level and selects one.
#include "plugins/cpu/conv/integer_loops.h"

#include <algorithm>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/conv/integer_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const IntegerLoopTable& IntegerLoops() { return *KEEL_PICK(kIntegerLoops); }

}  // namespace keel_cpu
