// matmul_loops.cc: compiles matmul_loops.inc per SIMD level and picks one.
#include "matmul_loops.h"

#include <algorithm>
#include <type_traits>

#include "common.h"
#include "simd.h"

#define KEEL_LOOPS "matmul_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const MatmulTable& MatmulLoops() { return *KEEL_PICK(kMatmul); }

}  // namespace keel_cpu
