// simd.cc: see simd.h.
#include "simd.h"

namespace keel_cpu {
namespace {

int Detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return !avx2 ? 0 : avx512 ? 2 : 1;
#else
  return 0;
#endif
}

const int level = Detect();

}  // namespace

int SimdLevel() { return level; }

}  // namespace keel_cpu
