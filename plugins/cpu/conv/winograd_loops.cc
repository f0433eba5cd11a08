// winograd_loops.cc: compiles winograd_loops.inc per SIMD level and selects one.
#include "plugins/cpu/conv/winograd_loops.h"

#include <cstring>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/conv/winograd_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const WinogradTable& WinogradLoops() { return *KEEL_PICK(kWinograd); }

}  // namespace keel_cpu
