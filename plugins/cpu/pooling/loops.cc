// loops.cc: compiles loops.inc per SIMD level and selects one.
#include "plugins/cpu/pooling/loops.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "plugins/cpu/common.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/pooling/loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

MaxOfCells MaxOfCellsLoop() { return *KEEL_PICK(kMaxOfCells); }
UnpoolCells UnpoolCellsLoop() { return *KEEL_PICK(kUnpoolCells); }
WherePositive WherePositiveLoop() { return *KEEL_PICK(kWherePositive); }
IndexOfCells IndexOfCellsLoop() { return *KEEL_PICK(kIndexOfCells); }
const PoolLoops& PoolRows() { return *KEEL_PICK(kPoolRows); }

}  // namespace keel_cpu
