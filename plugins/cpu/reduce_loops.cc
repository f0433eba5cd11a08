// reduce_loops.cc: compiles reduce_loops.inc per SIMD level and picks one.
#include "reduce_loops.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "common.h"
#include "simd.h"

#define KEEL_LOOPS "reduce_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const ReduceTable& Reductions() { return *KEEL_PICK(kReductions); }

}  // namespace keel_cpu
