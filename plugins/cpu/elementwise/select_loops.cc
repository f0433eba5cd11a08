// select_loops.cc: compiles select_loops.inc per SIMD level and selects one.
#include "plugins/cpu/elementwise/select_loops.h"

#include "plugins/cpu/common.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/elementwise/select_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const SelectTable& Selects() { return *KEEL_PICK(kSelects); }

}  // namespace keel_cpu
