// small_ifma.cc: products of small 32-bit integer matrices with AVX-512 IFMA, which multiplies and adds in
// one instruction; 32-bit lanes need three on the same ports.
//
// IFMA has 64-bit lanes and keeps the low 52 bits of a product. Their low 32 bits do not depend on operand
// bits above 32, so two adjacent elements can share a lane: a row as loaded has its even columns in the
// lanes, and shifted right by 32 its odd ones.
#include "plugins/cpu/matmul/small.h"
#include "plugins/cpu/simd/simd.h"

#if defined(__x86_64__)
#define KEEL_IFMA __attribute__((target("avx512f,avx512ifma")))

namespace keel_cpu {
namespace {

constexpr int64_t kLanes = 16;

struct Sums {
  __m512i even, odd;
};

template <int kRows>
KEEL_IFMA inline void AddRow(Sums* sums, __m512i row_of_b, const uint32_t* a, int64_t k) {
  const __m512i odd = row_of_b >> 32;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; r++) {
    const __m512i s = _mm512_set1_epi32(static_cast<int>(a[r * k]));
    sums[r].even = _mm512_madd52lo_epu64(sums[r].even, s, row_of_b);
    sums[r].odd = _mm512_madd52lo_epu64(sums[r].odd, s, odd);
  }
}

// A load of a row of b includes what follows it; the last rows, with nothing after them, use a mask.
template <int kRows>
KEEL_IFMA void Band(const uint32_t* a, const uint32_t* b, const SmallShape& s, uint32_t* c) {
  Sums sums[kRows] = {};
  const auto columns = static_cast<__mmask16>((1u << s.n) - 1);
  const uint32_t *whole = b + s.whole * s.n, *end = b + s.k * s.n;
  for (; b < whole; b += s.n) AddRow<kRows>(sums, _mm512_loadu_si512(b), a++, s.k);
  for (; b < end; b += s.n) AddRow<kRows>(sums, _mm512_maskz_loadu_epi32(columns, b), a++, s.k);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; r++, c += s.n) {
    const __m512i line = _mm512_mask_shuffle_epi32(sums[r].even, 0xAAAA, sums[r].odd, _MM_PERM_CCAA);
    _mm512_mask_storeu_epi32(c, columns, line);
  }
}

KEEL_IFMA keel_rc Multiply(const keel_call* call) {
  const SmallShape s = State<SmallShape>(call);
  const uint32_t *a = In<uint32_t>(call, 0), *b = In<uint32_t>(call, 1);
  uint32_t* c = Out<uint32_t>(call, 0);
  int64_t i = 0;
  for (; s.m - i >= 5; i += 5) Band<5>(a + i * s.k, b, s, c + i * s.n);
  for (; s.m - i >= 2; i += 2) Band<2>(a + i * s.k, b, s, c + i * s.n);
  for (; s.m - i >= 1; i += 1) Band<1>(a + i * s.k, b, s, c + i * s.n);
  return KEEL_OK;
}

constexpr SmallMatmul kMatmuls[] = {{KEEL_I32, kLanes, Multiply}, {KEEL_U32, kLanes, Multiply}};

}  // namespace

std::span<const SmallMatmul> IfmaMatmuls() {
  static const bool there = SimdLevel() == 2 && __builtin_cpu_supports("avx512ifma");
  if (there) return kMatmuls;
  return {};
}

}  // namespace keel_cpu

#else

std::span<const keel_cpu::SmallMatmul> keel_cpu::IfmaMatmuls() { return {}; }

#endif
