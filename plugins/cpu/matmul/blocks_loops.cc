// blocks_loops.cc: compiles blocks.inc per SIMD level and selects one.
#include "plugins/cpu/matmul/blocks.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/blocks.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const BlockKernel& BlockLoops(int64_t bits) { return (*KEEL_PICK(kBlocks))[PlaceOf(bits)]; }

}  // namespace keel_cpu
