// lanes_loops.cc: compiles lanes.inc per SIMD level and selects one.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "plugins/cpu/matmul/blocks.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/lanes.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const BlockKernel* LaneLoops(int64_t bits) {
  const BlockKernel& kernel = (*KEEL_PICK(kOfLanes))[PlaceOf(bits)];
  return kernel.multiply == nullptr ? nullptr : &kernel;
}

}  // namespace keel_cpu
