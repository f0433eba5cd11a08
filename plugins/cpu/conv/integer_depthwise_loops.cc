// integer_depthwise_loops.cc: see integer_depthwise_loops.h.
#include "plugins/cpu/conv/integer_depthwise_loops.h"

#include <cstring>

#include "plugins/cpu/simd/avx2.h"

#if defined(__x86_64__)
namespace keel_cpu {
namespace {

template <bool kSigned>
KEEL_AVX2_INLINE __m256i Words(const char* bytes) {
  const __m128i cells = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  return kSigned ? _mm256_cvtepi8_epi16(cells) : _mm256_cvtepu8_epi16(cells);
}

template <bool kSigned>
KEEL_AVX2 void RunBlocks(const DepthwiseCells& cells, const std::vector<DepthwiseBlock>& blocks,
                         const int16_t* w, const Int8Result& result, char* to) {
  const __m256 low = _mm256_set1_ps(result.low), high = _mm256_set1_ps(result.high);
  const __m256i zero = _mm256_set1_epi16(static_cast<int16_t>(result.zero));
  const bool to_signed = result.dtype == KEEL_I8;
  for (const DepthwiseBlock& b : blocks) {
    __m256i left = LoadInts(b.sums), right = LoadInts(b.sums + 8);
    for (int64_t p = 0; p < cells.pairs; p++, w += kDepthwiseBlock * 2) {
      const __m256i one = Words<kSigned>(cells.at[2 * p] + b.first),
                    two = Words<kSigned>(cells.at[2 * p + 1] + b.first);
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
                     to_signed ? _mm_packs_epi16(first, last) : _mm_packus_epi16(first, last));
  }
}

void Depthwise(const DepthwiseCells& cells, const std::vector<DepthwiseBlock>& blocks, const int16_t* w,
               const Int8Result& result, char* to) {
  (cells.is_signed ? RunBlocks<true> : RunBlocks<false>)(cells, blocks, w, result, to);
}

constexpr DepthwiseLoop kLoop = Depthwise;

}  // namespace

DepthwiseLoop DepthwiseOfBytes() { return SimdLevel() == 1 ? kLoop : nullptr; }

}  // namespace keel_cpu

#else

namespace keel_cpu {
DepthwiseLoop DepthwiseOfBytes() { return nullptr; }
}  // namespace keel_cpu

#endif
