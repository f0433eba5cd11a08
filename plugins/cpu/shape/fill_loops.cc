// fill_loops.cc: compiles fill_loops.inc per SIMD level and selects one.
#include "plugins/cpu/shape/fill_loops.h"

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/shape/fill_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

FillLoop FindFill() { return *KEEL_PICK(kFill); }

}  // namespace keel_cpu
