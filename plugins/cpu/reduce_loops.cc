// reduce_loops.cc: compiles reduce_loops.inc per SIMD level and picks one.
#include "reduce_loops.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common.h"
#include "simd.h"

#define KEEL_LOOPS "reduce_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const ReduceTable& Reductions() { return *KEEL_PICK(kReductions); }

const ReduceOp* FindReduction(const char* op, keel_dt dt) {
  for (int i = 0; i < Reductions().n; i++)
    if (const ReduceOp& row = Reductions().ops[i]; row.dtype == dt && std::strcmp(row.op, op) == 0)
      return &row;
  return nullptr;
}

}  // namespace keel_cpu
