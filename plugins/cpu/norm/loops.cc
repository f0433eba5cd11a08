// loops.cc: compiles loops.inc per SIMD level and selects one.
#include "plugins/cpu/norm/loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/norm/loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

const NormTable& Norms() { return *KEEL_PICK(kNorms); }

}  // namespace keel_cpu
