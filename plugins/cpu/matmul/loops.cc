// loops.cc: compiles loops.inc per SIMD level, and bf16_pairs.inc for AVX-512 BF16, and selects one.
#include "plugins/cpu/matmul/loops.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/stream.h"
#include "plugins/cpu/shape/transpose.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {
template <size_t kSize>
using BitsOf = std::conditional_t<
    kSize == 1, uint8_t,
    std::conditional_t<kSize == 2, uint16_t, std::conditional_t<kSize == 4, uint32_t, uint64_t>>>;
}
}  // namespace keel_cpu

#define KEEL_LOOPS "plugins/cpu/matmul/loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

#if defined(__x86_64__)
KEEL_TARGET(KEEL_TARGET_BF16)
namespace keel_cpu::bf16 {
namespace {
#include "plugins/cpu/matmul/bf16_pairs.inc"
}
}  // namespace keel_cpu::bf16
KEEL_TARGET_END
#endif

namespace keel_cpu {

const MatmulOp* MatmulLoops(keel_dt dtype) {
  for (const MatmulOp& op : *KEEL_PICK(kMatmul))
    if (op.dtype == dtype) return &op;
  return nullptr;
}

const MatmulOp* Bf16PairLoops() {
#if defined(__x86_64__)
  static const bool there = SimdLevel() == 2 && __builtin_cpu_supports("avx512bf16");
  if (there) return &bf16::kPairs;
#endif
  return nullptr;
}

}  // namespace keel_cpu
