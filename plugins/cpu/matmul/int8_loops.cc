// int8_loops.cc: compiles int8.inc per SIMD level, for AVX-512 VNNI, and for pairs of bytes on AVX2, and
// selects one.
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/matmul/int8.h"
#include "plugins/cpu/matmul/int8_pairs.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/int8.inc"
#include "plugins/cpu/simd/simd_vnni.inc"

#if defined(__x86_64__)
KEEL_TARGET(KEEL_TARGET_V3)
#define KEEL_VECTOR_BYTES 32
#define KEEL_BYTE_PAIRS 1
namespace keel_cpu::avx2_pairs {
namespace {
#include KEEL_LOOPS
}
}  // namespace keel_cpu::avx2_pairs
#undef KEEL_BYTE_PAIRS
#undef KEEL_VECTOR_BYTES
KEEL_TARGET_END
#endif

namespace keel_cpu {

const Int8Kernel& Int16Loops() { return *KEEL_PICK(kInt8); }
#if defined(__x86_64__)
const Int8Kernel& Int8Loops() {
  // Zen 4 multiplies 8 rows at a time 1 to 4 % faster than 12, for k of 256 to 1024; Intel is not measured.
  // The sums are exact, so an unknown maker, which counts as AMD, has the same answers with either.
  static const bool takes_8 = HasVnni() && ThisChip() == Chip::kAmd;
  return takes_8 ? vnni::kOfRows<8> : *KEEL_PICK_VNNI(kInt8);
}
const Int8Kernel* Int8PairLoops() { return SimdLevel() == 1 ? &avx2_pairs::kInt8 : nullptr; }
#else
const Int8Kernel& Int8Loops() { return Int16Loops(); }
const Int8Kernel* Int8PairLoops() { return nullptr; }
#endif

}  // namespace keel_cpu
