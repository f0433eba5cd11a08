// int8_loops.cc: compiles int8.inc per SIMD level, and for AVX-512 VNNI, and selects one.
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/matmul/int8.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/int8.inc"
#include "plugins/cpu/simd/simd_levels.inc"

#if defined(__x86_64__)
KEEL_TARGET(KEEL_TARGET_VNNI)
#define KEEL_VECTOR_BYTES 64
#define KEEL_INT8_BYTES 1
namespace keel_cpu::vnni {
namespace {
#include KEEL_LOOPS
}
}  // namespace keel_cpu::vnni
KEEL_TARGET_END
#endif

namespace keel_cpu {

const Int8Kernel& Int8Loops() {
#if defined(__x86_64__)
  static const bool vnni = SimdLevel() == 2 && __builtin_cpu_supports("avx512vnni");
  if (vnni) return vnni::kInt8;
#endif
  return Int16Loops();
}

const Int8Kernel& Int16Loops() { return *KEEL_PICK(kInt8); }

}  // namespace keel_cpu
