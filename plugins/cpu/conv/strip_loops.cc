// strip_loops.cc: compiles strip_loops.inc per SIMD level and selects one.
#include "plugins/cpu/conv/strip_loops.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/conv/strip_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const StripLoops* StripLoopsHere() {
  const StripLoops* loops = KEEL_PICK(kStrips);
  return loops->product != nullptr ? loops : nullptr;
}

}  // namespace keel_cpu
