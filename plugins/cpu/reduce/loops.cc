// loops.cc: compiles loops.inc per SIMD level and selects one.
#include "plugins/cpu/reduce/loops.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "plugins/cpu/common.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/reduce/loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const ReduceTable& Reductions() { return *KEEL_PICK(kReductions); }

const ReduceOp* FindReduction(const char* op, keel_dt dt) {
  for (int i = 0; i < Reductions().n; i++)
    if (const ReduceOp& row = Reductions().ops[i]; row.dtype == dt && std::strcmp(row.op, op) == 0)
      return &row;
  return nullptr;
}

}  // namespace keel_cpu
