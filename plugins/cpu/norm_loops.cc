// norm_loops.cc: compiles norm_loops.inc per SIMD level and picks one.
#include "norm_loops.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "common.h"
#include "parallel.h"
#include "simd.h"

#define KEEL_LOOPS "norm_loops.inc"
#include "simd_levels.inc"

namespace keel_cpu {

const NormTable& Norms() { return *KEEL_PICK(kNorms); }

}  // namespace keel_cpu
