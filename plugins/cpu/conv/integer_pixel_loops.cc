// integer_pixel_loops.cc: see integer_pixels.h. Each sum of two products is exact, as the packed weights of a
// pair add up to at most 128 on each side of 0 (matmul/int8_pairs.h).
#include <algorithm>
#include <cstring>

#include "plugins/cpu/conv/integer_pixels.h"
#include "plugins/cpu/simd/simd.h"

#if defined(__x86_64__)
#define KEEL_AVX2 __attribute__((target("avx2,fma")))
#define KEEL_AVX2_INLINE [[gnu::always_inline]] KEEL_AVX2 inline

namespace keel_cpu {
namespace {

KEEL_AVX2_INLINE __m256i LoadInts(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
KEEL_AVX2_INLINE void StoreInts(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
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

// Missing rows of a panel repeat the last one: their results are not used.
KEEL_AVX2 void Columns(const char* rows, int64_t step, int64_t count, int64_t groups, int64_t vectors,
                       uint32_t flip, char* panel) {
  const __m256i flips = _mm256_set1_epi32(static_cast<int>(flip));
  for (int64_t v = 0; v < vectors; v++) {
    const char* from[kPlaces];
    for (int64_t i = 0; i < kPlaces; i++) from[i] = rows + std::min(v * kPlaces + i, count - 1) * step;
    char* to = panel + v * 32;
    int64_t g = 0;
    for (; groups >= 8 && g < groups; g += 8) {
      g = std::min(g, groups - 8);  // the last ones may overlap those before
      __m256i r[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) r[i] = _mm256_xor_si256(LoadInts(from[i] + g * 4), flips);
      Transpose(r);
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) StoreInts(to + (g + i) * vectors * 32, r[i]);
    }
    for (; g < groups; g++)
      for (int64_t i = 0; i < kPlaces; i++) {
        uint32_t group;
        std::memcpy(&group, from[i] + g * 4, 4);
        group ^= flip;
        std::memcpy(to + g * vectors * 32 + i * 4, &group, 4);
      }
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

// sums + the products of groups of four cells and a group of weights.
KEEL_AVX2_INLINE __m256i Dot(__m256i sums, const char* cells, __m256i weights) {
  const __m256i pairs = _mm256_maddubs_epi16(LoadInts(cells), weights);
  return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

// Keeps the compiler from moving products up to where their results do not fit in registers.
KEEL_AVX2_INLINE void InOrder(__m256i* v) { asm volatile("" : "+x"(*v)); }

// Sums of products less the part of the zero point.
template <int kVectors>
KEEL_AVX2_INLINE void Quad(const PixelPanel& panel, const char* quad, __m256i (&sums)[kQuad][kVectors]) {
  const char *cells = panel.cells, *w = quad + sizeof(WeightQuad);
#pragma GCC unroll 4
  for (int c = 0; c < kQuad; c++)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) sums[c][v] = _mm256_setzero_si256();
  for (int64_t g = 0; g < panel.groups; g++, cells += kVectors * 32, w += kQuad * 4) {
#pragma GCC unroll 4
    for (int c = 0; c < kQuad; c++) {
      __m256i weights = Everywhere(w + c * 4);
      InOrder(&weights);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) {
        sums[c][v] = Dot(sums[c][v], cells + v * 32, weights);
        InOrder(&sums[c][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kQuad; c++) {
    int32_t extras;
    std::memcpy(&extras, quad + offsetof(WeightQuad, extras) + c * 4, 4);
    for (; extras > 0; extras--, w += sizeof(ExtraWeights)) {
      int32_t place;
      std::memcpy(&place, w, 4);
      const __m256i weights = Everywhere(w + 4);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++)
        sums[c][v] = Dot(sums[c][v], panel.cells + place * kVectors + v * 32, weights);
    }
    const __m256i less = _mm256_mullo_epi32(Everywhere(quad + c * 4), _mm256_set1_epi32(panel.zero));
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) sums[c][v] = _mm256_sub_epi32(sums[c][v], less);
  }
}

template <int kVectors>
KEEL_AVX2 void WriteSums(const PixelPanel& panel, const char* quad, char* to) {
  __m256i sums[kQuad][kVectors];
  Quad(panel, quad, sums);
#pragma GCC unroll 4
  for (int c = 0; c < kQuad; c++)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) StoreInts(to + (c * kVectors + v) * 32, sums[c][v]);
}
KEEL_AVX2 void SumsOf(const PixelPanel& panel, const char* quad, void* to) {
  panel.vectors == 2 ? WriteSums<2>(panel, quad, static_cast<char*>(to))
                     : WriteSums<1>(panel, quad, static_cast<char*>(to));
}

// Scaled, shifted and bounded, halves to even.
KEEL_AVX2_INLINE __m256i Rounded(__m256i sums, __m256 scale, __m256 shift, __m256 low, __m256 high) {
  const __m256 x = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), scale, shift);
  return _mm256_cvtps_epi32(_mm256_min_ps(high, _mm256_max_ps(low, x)));
}

template <int kVectors>
KEEL_AVX2 void WriteBytes(const PixelPanel& panel, const char* quad, const Int8Result& result, int64_t first,
                          char* to) {
  __m256i sums[kQuad][kVectors], made[kVectors];
  Quad(panel, quad, sums);
  const __m256 low = _mm256_set1_ps(result.low), high = _mm256_set1_ps(result.high);
  const __m256i zero = _mm256_set1_epi32(result.zero), byte = _mm256_set1_epi32(255);
#pragma GCC unroll 4
  for (int c = 0; c < kQuad; c++) {
    const __m256 scale = _mm256_set1_ps(result.scale[static_cast<size_t>(first + c)]),
                 shift = _mm256_set1_ps(result.shift[static_cast<size_t>(first + c)]);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) {
      const __m256i whole = Rounded(sums[c][v], scale, shift, low, high);
      const __m256i one = _mm256_and_si256(_mm256_add_epi32(whole, zero), byte);
      made[v] = c == 0 ? one : _mm256_or_si256(made[v], _mm256_slli_epi32(one, c * 8));
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; v++) StoreInts(to + v * 32, made[v]);
}
KEEL_AVX2 void BytesOf(const PixelPanel& panel, const char* quad, const Int8Result& result, int64_t first,
                       void* to) {
  panel.vectors == 2 ? WriteBytes<2>(panel, quad, result, first, static_cast<char*>(to))
                     : WriteBytes<1>(panel, quad, result, first, static_cast<char*>(to));
}

KEEL_AVX2_INLINE __m256i Words(const char* bytes, __m128i flip) {
  return _mm256_cvtepu8_epi16(_mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)), flip));
}

KEEL_AVX2 void Depthwise(const DepthwiseCells& cells, const std::vector<DepthwiseBlock>& blocks,
                         const int16_t* w, const Int8Result& result, char* to) {
  const __m256 low = _mm256_set1_ps(result.low), high = _mm256_set1_ps(result.high);
  const __m256i zero = _mm256_set1_epi16(static_cast<int16_t>(result.zero));
  const __m128i flip = _mm_set1_epi32(static_cast<int>(cells.flip));
  const bool is_signed = result.dtype == KEEL_I8;
  for (const DepthwiseBlock& b : blocks) {
    __m256i left = LoadInts(b.sums), right = LoadInts(b.sums + 8);
    for (int64_t p = 0; p < cells.pairs; p++, w += kDepthwiseBlock * 2) {
      const __m256i one = Words(cells.at[2 * p] + b.first, flip),
                    two = Words(cells.at[2 * p + 1] + b.first, flip);
      left = _mm256_add_epi32(left, _mm256_madd_epi16(_mm256_unpacklo_epi16(one, two), LoadInts(w)));
      right = _mm256_add_epi32(right, _mm256_madd_epi16(_mm256_unpackhi_epi16(one, two), LoadInts(w + 16)));
    }
    const __m256i words = _mm256_add_epi16(
        _mm256_packs_epi32(
            Rounded(left, _mm256_loadu_ps(b.scale), _mm256_loadu_ps(b.shift), low, high),
            Rounded(right, _mm256_loadu_ps(b.scale + 8), _mm256_loadu_ps(b.shift + 8), low, high)),
        zero);
    const __m128i first = _mm256_castsi256_si128(words), last = _mm256_extracti128_si256(words, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + b.first),
                     is_signed ? _mm_packs_epi16(first, last) : _mm_packus_epi16(first, last));
  }
}

constexpr PixelLoopTable kLoops = {Columns, Rows, SumsOf, BytesOf, Depthwise};

}  // namespace

const PixelLoopTable* PixelLoops() { return SimdLevel() == 1 ? &kLoops : nullptr; }

}  // namespace keel_cpu

#else

namespace keel_cpu {
const PixelLoopTable* PixelLoops() { return nullptr; }
}  // namespace keel_cpu

#endif
