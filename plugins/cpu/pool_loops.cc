// pool_loops.cc: compiles pool_loops.inc per SIMD level and picks one.
#include "pool_loops.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "simd.h"

#define KEEL_LOOPS "pool_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

MaxOfCells MaxOfCellsLoop() { return *KEEL_PICK(kMaxOfCells); }
UnpoolCells UnpoolCellsLoop() { return *KEEL_PICK(kUnpoolCells); }
WherePositive WherePositiveLoop() { return *KEEL_PICK(kWherePositive); }
IndexOfCells IndexOfCellsLoop() { return *KEEL_PICK(kIndexOfCells); }

}  // namespace keel_cpu
