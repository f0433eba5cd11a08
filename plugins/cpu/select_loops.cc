// select_loops.cc: compiles select_loops.inc per SIMD level and picks one.
#include "select_loops.h"

#include "common.h"
#include "simd.h"

#define KEEL_LOOPS "select_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const SelectTable& Selects() { return *KEEL_PICK(kSelects); }

}  // namespace keel_cpu
