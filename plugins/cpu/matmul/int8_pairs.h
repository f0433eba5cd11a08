// int8_pairs.h: weights for kernels that add pairs of products, of an unsigned byte and a signed one, to
// 16-bit integers that saturate (AVX2's vpmaddubsw). A sum is exact if the weights of the pair add up to at
// most 128 on each side of 0: 255 * 128 < 2^15. Few pairs of trained weights do not, and they are halved:
// the second half is in an extra group.
//
// A panel: [groups][columns][4] bytes; then for each vector of kPairColumns columns ExtraGroups with room for
// `most` groups.
#pragma once

#include <algorithm>
#include <cstdint>

namespace keel_cpu {

// Whether sums of products of unsigned bytes and two weights fit in 16 bits.
inline bool FitsPair(int32_t a, int32_t b) {
  return std::max(a, 0) + std::max(b, 0) <= 128 && std::min(a, 0) + std::min(b, 0) >= -128;
}

inline constexpr int64_t kPairColumns = 8;

// The extra groups of a vector of columns, with room for at least one: int32_t place[most], the groups that
// they add to, and int8_t weights[most][columns][4].
struct ExtraGroups {
  int32_t count;
  const char *places, *weights;
  static int64_t Bytes(int64_t most) { return most == 0 ? 0 : 32 + (most * 4 + 31) / 32 * 32 + most * 32; }
  static ExtraGroups At(const char* from, int64_t most) {
    ExtraGroups at = {0, from + 32, from + Bytes(most) - most * 32};
    __builtin_memcpy(&at.count, from, sizeof at.count);
    return at;
  }
};

// A number to add to all weights [matrices, k, n] before they are packed, and the most extra groups of a
// vector of columns; extra < 0: too many pairs do not fit.
struct PairShift {
  int32_t shift = 0;
  int64_t extra = -1;
};
PairShift FindPairShift(const void* b, bool is_signed, int64_t matrices, int64_t k, int64_t n);

// Halves the pairs of a packed panel that do not fit, and writes the extra groups.
void SplitPairs(char* panel, int64_t groups, int64_t columns, int64_t most);

}  // namespace keel_cpu
