// fetch.h: prefetches of cache lines, and the sizes of operands that prefetches are for.
#pragma once

#include <cstdint>

#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {

inline constexpr int64_t kLine = 64;  // bytes

// The nearest cache that keeps a line. The second level: for lines read after more loads than the first level
// holds. Values as in __builtin_prefetch.
enum Near { kIntoL2 = 2, kIntoL1 = 3 };

// Memory past the end of an array is not touched.
template <Near kNear = kIntoL1, bool kWrites = false>
[[gnu::always_inline]] inline void FetchLines(const void* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLine)
    __builtin_prefetch(static_cast<const char*>(from) + i, kWrites, kNear);
}

// ---- the least bytes of all operands: fewer are in the caches, and prefetches only take time

// A step of a map fetches its operands of the next tile: the processor, which fetches within pages of 4 KiB,
// starts again with each tile of each step. On an EPYC four operands of 4 or 32 MiB and two functions took
// 0.68 of the time; of 64 KiB, which the second-level cache holds, 1.09.
inline int64_t FetchedByMaps() { return 4 * SecondLevelCache(); }

// Copies of short rows that are apart: the processor does not foresee the next ones. Of few rows so far
// apart, such as 12 heads, half of those fetched are others, which pays from memory only (Zen 4: 3 MB 1.12,
// 10 MB 0.74).
inline constexpr int64_t kFetchedByCopies = 1 << 17, kFetchedByCopiesOfFew = 1 << 23;

// Products of few rows with keys and values that are read in place, as a decoder's.
inline int64_t FetchedByAttention() { return SecondLevelCache(); }

}  // namespace keel_cpu
