// winograd_loops.cc: compiles winograd_loops.inc per SIMD level and picks one.
#include "winograd_loops.h"

#include <cstring>

#include "simd.h"

#define KEEL_LOOPS "winograd_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const WinogradTable& WinogradLoops() { return *KEEL_PICK(kWinograd); }

}  // namespace keel_cpu
