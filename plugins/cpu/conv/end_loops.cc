// end_loops.cc: compiles end_loops.inc per SIMD level and selects one.
#include "plugins/cpu/conv/end_loops.h"

#include <cstring>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/conv/end_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

EndRows* EndLoop() { return *KEEL_PICK(kEnd); }

}  // namespace keel_cpu
