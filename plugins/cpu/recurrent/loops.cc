// loops.cc: compiles loops.inc per SIMD level and selects one.
#include "plugins/cpu/recurrent/loops.h"

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/recurrent/loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const PairLoop& Pairs() { return *KEEL_PICK(kPair); }

}  // namespace keel_cpu
