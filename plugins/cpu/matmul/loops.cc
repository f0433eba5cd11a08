// loops.cc: compiles loops.inc per SIMD level and selects one.
#include "plugins/cpu/matmul/loops.h"

#include <algorithm>
#include <type_traits>

#include "plugins/cpu/common.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const MatmulTable& MatmulLoops() { return *KEEL_PICK(kMatmul); }

}  // namespace keel_cpu
