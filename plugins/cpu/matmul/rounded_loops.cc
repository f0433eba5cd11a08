// rounded_loops.cc: compiles rounded.inc per SIMD level, and for AVX-512 VNNI, and selects one.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "plugins/cpu/matmul/blocks.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/rounded.inc"
#include "plugins/cpu/simd/simd_vnni.inc"

namespace keel_cpu {

const BlockKernel& RoundedLoops(int64_t bits) { return (*KEEL_PICK_VNNI(kRounded))[PlaceOf(bits)]; }

}  // namespace keel_cpu
