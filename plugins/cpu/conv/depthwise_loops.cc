// depthwise_loops.cc: compiles depthwise_loops.inc per SIMD level and selects one.
#include "plugins/cpu/conv/depthwise_loops.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/conv/depthwise_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const DepthwiseLoops& DepthwiseOfChannel() { return *KEEL_PICK(kDepthwise); }

}  // namespace keel_cpu
