// storage_loops.cc: compiles storage_loops.inc per SIMD level and selects one.
#include "plugins/cpu/elementwise/storage_loops.h"

#include <bit>
#include <cmath>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/elementwise/storage_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

EncodeLoop FindEncode() { return *KEEL_PICK(kEncode); }

}  // namespace keel_cpu
