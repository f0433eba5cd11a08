// pool_loops.cc: compiles pool_loops.inc per SIMD level and picks one.
#include "pool_loops.h"

#include <cstring>
#include <limits>

#include "simd.h"

#define KEEL_LOOPS "pool_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

MaxOfCells MaxOfCellsLoop() { return *KEEL_PICK(kMaxOfCells); }

}  // namespace keel_cpu
