// avx2.h: for loops that exist for AVX2 alone, in intrinsics, and are compiled once: without simd_levels.inc.
// They are taken where SimdLevel() is 1.
#pragma once

#include "plugins/cpu/simd/simd.h"

#if defined(__x86_64__)
#define KEEL_AVX2 __attribute__((target("avx2,fma")))
#define KEEL_AVX2_INLINE [[gnu::always_inline]] KEEL_AVX2 inline

namespace keel_cpu {

KEEL_AVX2_INLINE __m256i LoadInts(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
KEEL_AVX2_INLINE void StoreInts(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }

// Sums of integers, scaled, shifted and bounded, halves to even.
KEEL_AVX2_INLINE __m256i Rounded(__m256i sums, __m256 scale, __m256 shift, __m256 low, __m256 high) {
  const __m256 x = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), scale, shift);
  return _mm256_cvtps_epi32(_mm256_min_ps(high, _mm256_max_ps(low, x)));
}

}  // namespace keel_cpu
#endif
