// word_sorter.h: sorts keys (sort_keys.h) as words (sort_loops.h): a row, or a group of short rows.
#pragma once

#include <algorithm>
#include <bit>

#include "plugins/cpu/reduce/sort_keys.h"
#include "plugins/cpu/reduce/sort_loops.h"

namespace keel_cpu {

// Sorts keys with their places: a word is a key's leading bits above its place. U is the type of keys.
template <class U>
class WordSorter {
 public:
  static int64_t Most() { return FindSort().most_per_byte * int64_t{sizeof(U)}; }
  static int64_t Bytes(int64_t n) { return 2 * SortRoom(n) * int64_t{sizeof(int64_t)}; }

  // `memory` holds Bytes(n) for the largest n.
  explicit WordSorter(void* memory) : memory_(static_cast<int64_t*>(memory)) {}

  // Sorts key(i) for i below n; then Place(j) is the place of the j-th.
  template <class KeyAt>
  void Sort(int64_t n, KeyAt key) {
    bits_ = static_cast<int>(std::bit_width(static_cast<uint64_t>(n - 1)));
    int64_t* other = memory_ + SortRoom(n);
    int dropped = 0;
    if constexpr (sizeof(U) < sizeof(int64_t))
      for (int64_t i = 0; i < n; i++) memory_[i] = static_cast<int64_t>(key(i)) << bits_ | i;
    else
      dropped = MakeWords(n, key, other);
    words_ = FindSort().sort(memory_, other, n);
    if (dropped > 0) SortEqual(n, key);
  }
  int64_t Place(int64_t j) const { return words_[j] & ((int64_t{1} << bits_) - 1); }

 private:
  // Of 64-bit keys, by their difference to the least one; returns how many of its lowest bits are dropped.
  template <class KeyAt>
  int MakeWords(int64_t n, const KeyAt& key, int64_t* keys) {
    constexpr int kWordBits = 63;
    uint64_t least = key(0), most = least;
    for (int64_t i = 0; i < n; i++) {
      const uint64_t now = key(i);
      keys[i] = static_cast<int64_t>(now);
      least = std::min(least, now), most = std::max(most, now);
    }
    const int dropped = std::max(0, static_cast<int>(std::bit_width(most - least)) + bits_ - kWordBits);
    for (int64_t i = 0; i < n; i++)
      memory_[i] = static_cast<int64_t>((static_cast<uint64_t>(keys[i]) - least) >> dropped << bits_) | i;
    return dropped;
  }
  // Words with the same leading bits come into the order of their whole keys.
  template <class KeyAt>
  void SortEqual(int64_t n, const KeyAt& key) {
    const int64_t mask = (int64_t{1} << bits_) - 1;
    const auto before = [&](int64_t a, int64_t b) {
      const U x = key(a & mask), y = key(b & mask);
      return x != y ? x < y : a < b;
    };
    for (int64_t begin = 0, end = 1; end <= n; end++) {
      if (end < n && words_[begin] >> bits_ == words_[end] >> bits_) continue;
      if (end - begin > 1) std::sort(words_ + begin, words_ + end, before);
      begin = end;
    }
  }

  int64_t *memory_, *words_ = nullptr;
  int bits_ = 0;
};

// Sorts a group of rows of n elements, at most kFewWords; gives k of each. `rows` is at most the group's
// size.
template <Order kOrder, class T>
void SortGroup(const T* x, int64_t rows, int64_t n, int64_t k, T* values, int64_t* places) {
  const SortLoop& loop = FindSort();
  int64_t words[kGroupWords];
  std::fill(words, words + kGroupWords, INT64_MAX);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++)
      words[i * loop.lanes + r] = static_cast<int64_t>(KeyOf<kOrder>(x[r * n + i])) * kFewWords + i;
  const int64_t apart = loop.sort_group(words, n);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < k; j++) {
      const int64_t place = words[r * apart + j] % kFewWords;
      places[r * k + j] = place;
      values[r * k + j] = x[r * n + place];
    }
}

}  // namespace keel_cpu
