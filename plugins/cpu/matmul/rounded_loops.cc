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
#include "plugins/cpu/simd/simd_levels.inc"

#if defined(__x86_64__)
KEEL_TARGET(KEEL_TARGET_VNNI)
#define KEEL_VECTOR_BYTES 64
#define KEEL_ROUNDED_VNNI 1
namespace keel_cpu::vnni {
namespace {
#include KEEL_LOOPS
}
}  // namespace keel_cpu::vnni
KEEL_TARGET_END
#endif

namespace keel_cpu {

const BlockKernel& RoundedLoops(int64_t bits) {
#if defined(__x86_64__)
  static const bool vnni = SimdLevel() == 2 && __builtin_cpu_supports("avx512vnni");
  if (vnni) return vnni::kRounded[PlaceOf(bits)];
#endif
  return (*KEEL_PICK(kRounded))[PlaceOf(bits)];
}

}  // namespace keel_cpu
