// sort_loops.h: sorts words: i64 numbers with a key above a place, so that all differ.
#pragma once

#include <cstdint>

namespace keel_cpu {

// The words that SortLoop::sort needs room for, at `words` and at `other`, to sort n.
int64_t SortRoom(int64_t n);

struct SortLoop {
  // Sorts n words; returns where they are then: `words` or `other`.
  int64_t* (*sort)(int64_t* words, int64_t* other, int64_t n);
  // For each byte of a key: up to so many words this is faster than a radix sort, which passes once for each
  // byte.
  int64_t most_per_byte;
  // Sorts a group of `lanes` rows of n words, at most kFewWords. Word i of row r is at words[i * lanes + r],
  // of kGroupWords; places beyond n hold INT64_MAX. Then it is at words[r * s + i], where s is returned.
  int64_t (*sort_group)(int64_t* words, int64_t n);
  int64_t lanes;
};
inline constexpr int64_t kFewWords = 16, kGroupWords = kFewWords * 8;
const SortLoop& FindSort();

}  // namespace keel_cpu
