// radix_sorter.h: a radix sort of items: keys (sort_keys.h) with places.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {

// U is the type of keys, I counts places. The same for all dtypes of one size.
template <class U, class I>
class RadixSorter {
 protected:
  static constexpr int kBits = 8 * sizeof(U), kDigit = 8;
  static constexpr size_t kBuckets = size_t{1} << kDigit;
  struct Item {
    U key;
    I place;
  };
  using Counts = std::array<I, kBuckets>;  // by digit

  // `memory` holds twice n items.
  RadixSorter(void* memory, int64_t n) : items_(static_cast<Item*>(memory)), other_(items_ + n) {}

  // Sorts the n items by their digits from the lowest on; items with the same digit keep their order.
  void SortByDigits(const keel_call* call, int64_t n) {
    std::array<Counts, kBits / kDigit> counts = {};
    InChunks(call, 0, n, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        for (int digit = 0; digit < kBits / kDigit; digit++)
          counts[static_cast<size_t>(digit)][DigitOf(items_[i].key, digit)]++;
    });
    for (int digit = 0; digit < kBits / kDigit; digit++)
      Pass(call, n, digit, counts[static_cast<size_t>(digit)]);
  }

  Item *items_, *other_;

 private:
  static size_t DigitOf(U key, int digit) {
    return static_cast<size_t>(key >> digit * kDigit) & (kBuckets - 1);
  }
  void Pass(const keel_call* call, int64_t n, int digit, Counts& at) {
    if (std::find(at.begin(), at.end(), static_cast<I>(n)) != at.end()) return;
    for (I begin = 0; I & bucket : at) begin += std::exchange(bucket, begin);
    InChunks(call, 0, n, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) other_[at[DigitOf(items_[i].key, digit)]++] = items_[i];
    });
    std::swap(items_, other_);
  }
};

}  // namespace keel_cpu
