// narrow_loops.cc: compiles narrow_loops.inc per SIMD level and selects one.
#include "plugins/cpu/conv/narrow_loops.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/conv/narrow_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const NarrowLoops* NarrowLoopsHere() {
  const NarrowLoops* loops = KEEL_PICK(kNarrow);
  return loops->block > 0 ? loops : nullptr;
}

}  // namespace keel_cpu
