// int8_bin_loops.cc: see int8_bins.h.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/matmul/int8_bins.h"
#include "plugins/cpu/simd/avx2.h"

#if defined(__x86_64__)
namespace keel_cpu {
namespace {

KEEL_AVX2_INLINE __m256i Everywhere(const void* from) {
  int32_t x;
  std::memcpy(&x, from, sizeof x);
  return _mm256_set1_epi32(x);
}

// The transpose of 8 rows of 8 numbers.
KEEL_AVX2_INLINE void Transpose(__m256i (&r)[8]) {
  __m256i pairs[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
    r[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
    r[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    r[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const __m256i low = _mm256_permute2x128_si256(r[i], r[i + 4], 0x20);
    r[i + 4] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x31);
    r[i] = low;
  }
}

// Missing rows repeat the last one: their results are not used.
KEEL_AVX2 void Columns(const char* rows, int64_t step, int64_t count, int64_t groups, uint32_t flip,
                       char* to) {
  const __m256i flips = _mm256_set1_epi32(static_cast<int>(flip));
  const char* from[kPlaces];
  for (int64_t i = 0; i < kPlaces; i++) from[i] = rows + std::min(i, count - 1) * step;
  int64_t g = 0;
  for (; groups >= 8 && g < groups; g += 8) {
    g = std::min(g, groups - 8);  // the last ones may overlap those before
    __m256i r[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) r[i] = _mm256_xor_si256(LoadInts(from[i] + g * 4), flips);
    Transpose(r);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) StoreInts(to + (g + i) * kGroupBytes, r[i]);
  }
  for (; g < groups; g++)
    for (int64_t i = 0; i < kPlaces; i++) {
      uint32_t group;
      std::memcpy(&group, from[i] + g * 4, 4);
      group ^= flip;
      std::memcpy(to + g * kGroupBytes + i * 4, &group, 4);
    }
}

KEEL_AVX2_INLINE void StoreFirst(char* to, __m256i v, int64_t bytes) {
  if (bytes == 32) return StoreInts(to, v);
  char all[32];
  StoreInts(all, v);
  std::memcpy(to, all, static_cast<size_t>(bytes));
}

KEEL_AVX2 void Rows(const uint32_t* from, int64_t vectors, int64_t count, int64_t bytes, char* to,
                    int64_t step) {
  for (int64_t v = 0; v < vectors; v++, from += kPlaces) {
    const int64_t rows = std::clamp<int64_t>(count - v * kPlaces, 0, kPlaces);
    char* first = to + v * kPlaces * step;
    for (int64_t at = 0; at < bytes; at += 32) {
      if (at + 32 > bytes && bytes >= 32 && bytes % 4 == 0) at = bytes - 32;  // may overlap those before
      const int64_t wide = std::min<int64_t>(32, bytes - at), there = (wide + 3) / 4;
      __m256i r[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++)
        r[i] = LoadInts(from + (at / 4 + std::min<int64_t>(i, there - 1)) * vectors * kPlaces);
      Transpose(r);
      if (wide == 32 && rows == kPlaces) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) StoreInts(first + i * step + at, r[i]);
      } else {
        for (int64_t i = 0; i < rows; i++) StoreFirst(first + i * step + at, r[i], wide);
      }
    }
  }
}

// Sums in place: assembly, as a compiler copies each sum to another register.
KEEL_AVX2_INLINE void AddWords(__m256i* to, __m256i v) {
  asm volatile("vpaddw %1, %0, %0" : "+x"(*to) : "x"(v));
}
KEEL_AVX2_INLINE void AddInts(__m256i* to, __m256i v) {
  asm volatile("vpaddd %1, %0, %0" : "+x"(*to) : "x"(v));
}

// Adds the products of `count` bins of kSize groups; returns the end of their weights.
template <int kSize, int kVectors>
KEEL_AVX2_INLINE const char* AddBins(const char* cells, const char* w, int count, __m256i (&sums)[kVectors]) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (; count > 0; count--, w += kSize * 5) {
    const char* at[kSize];
    __m256i weights[kSize];
#pragma GCC unroll 4
    for (int i = 0; i < kSize; i++) {
      at[i] = cells + static_cast<uint64_t>(static_cast<uint8_t>(w[i])) * kGroupBytes;
      weights[i] = Everywhere(w + kSize + i * 4);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; v++) {
      __m256i pairs = _mm256_maddubs_epi16(LoadInts(at[0] + v * 32), weights[0]);
#pragma GCC unroll 4
      for (int i = 1; i < kSize; i++)
        AddWords(&pairs, _mm256_maddubs_epi16(LoadInts(at[i] + v * 32), weights[i]));
      AddInts(&sums[v], _mm256_madd_epi16(pairs, ones));
    }
  }
  return w;
}

template <int kVectors>
KEEL_AVX2 void SumsOf(const char* cells, const char* block, bool first, int32_t zero, int32_t* to) {
  QuadHead head;
  std::memcpy(&head, block, sizeof head);
  const char* w = block + sizeof head;
  for (int c = 0; c < kQuad; c++, to += kVectors * kPlaces) {
    const uint8_t* bins = head.bins[c];
    __m256i sums[kVectors];
    const __m256i less = _mm256_set1_epi32(
        static_cast<int32_t>(0 - static_cast<uint32_t>(head.sums[c]) * static_cast<uint32_t>(zero)));
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; v++) sums[v] = first ? less : LoadInts(to + v * kPlaces);
    w = AddBins<1>(cells, w, bins[0], sums);
    w = AddBins<2>(cells, w, bins[1], sums);
    w = AddBins<3>(cells, w, bins[2], sums);
    w = AddBins<4>(cells, w, bins[3], sums);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; v++) StoreInts(to + v * kPlaces, sums[v]);
  }
}

void Sums(const char* cells, int64_t vectors, const char* block, bool first, int32_t zero, int32_t* to) {
  static constexpr decltype(&SumsOf<1>) kByVectors[] = {SumsOf<1>, SumsOf<2>, SumsOf<3>, SumsOf<4>,
                                                        SumsOf<5>, SumsOf<6>, SumsOf<7>, SumsOf<8>};
  kByVectors[vectors - 1](cells, block, first, zero, to);
}

// Bounded numbers of four channels, [kQuad][kPlaces], to bytes [kPlaces][kQuad].
template <bool kSigned>
KEEL_AVX2_INLINE __m256i Interleaved(const __m256i (&r)[kQuad], __m256i zero) {
  const __m256i left = _mm256_add_epi16(_mm256_packs_epi32(r[0], r[1]), zero),
                right = _mm256_add_epi16(_mm256_packs_epi32(r[2], r[3]), zero);
  const __m256i order =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm256_shuffle_epi8(kSigned ? _mm256_packs_epi16(left, right) : _mm256_packus_epi16(left, right),
                             order);
}

template <bool kSigned>
KEEL_AVX2 void WriteBytes(const int32_t* sums, int64_t vectors, const Int8Result& result, int64_t channel,
                          char* to) {
  const __m256 low = _mm256_set1_ps(result.low), high = _mm256_set1_ps(result.high);
  const __m256i zero = _mm256_set1_epi16(static_cast<int16_t>(result.zero));
  const float *scale = result.scale.data() + channel, *shift = result.shift.data() + channel;
  for (int64_t v = 0; v < vectors; v++) {
    __m256i r[kQuad];
#pragma GCC unroll 4
    for (int c = 0; c < kQuad; c++)
      r[c] = Rounded(LoadInts(sums + (c * vectors + v) * kPlaces), _mm256_set1_ps(scale[c]),
                     _mm256_set1_ps(shift[c]), low, high);
    StoreInts(to + v * 32, Interleaved<kSigned>(r, zero));
  }
}
KEEL_AVX2 void BytesOf(const int32_t* sums, int64_t vectors, const Int8Result& result, int64_t channel,
                       void* to) {
  (result.dtype == KEEL_I8 ? WriteBytes<true> : WriteBytes<false>)(sums, vectors, result, channel,
                                                                   static_cast<char*>(to));
}

constexpr BinLoopTable kLoops = {Columns, Sums, BytesOf, Rows};

}  // namespace

const BinLoopTable* BinLoops() { return SimdLevel() == 1 ? &kLoops : nullptr; }

}  // namespace keel_cpu

#else

namespace keel_cpu {
const BinLoopTable* BinLoops() { return nullptr; }
}  // namespace keel_cpu

#endif
