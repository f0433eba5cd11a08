// sorter.h: sorts the k first elements of a row. Short rows are sorted as words; so are the few elements that
// may be among the k first of a long row; others by a radix sort.
#pragma once

#include <algorithm>
#include <array>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/reduce/radix_sorter.h"
#include "plugins/cpu/reduce/sort_keys.h"
#include "plugins/cpu/reduce/word_sorter.h"

namespace keel_cpu {

// Sorts rows of n elements; I counts them.
template <Order kOrder, class T, class I>
class Sorter : private RadixSorter<Unsigned<sizeof(T)>, I> {
  using U = Unsigned<sizeof(T)>;
  using Base = RadixSorter<U, I>;
  using Base::items_;
  using typename Base::Item;
  static constexpr int kTop = Base::kBits - std::min(Base::kBits, 11);
  static constexpr int64_t kSelected = 4;
  static constexpr size_t kLeading = size_t{1} << std::min(Base::kBits, 11);

 public:
  // Of memory for a row.
  static int64_t Bytes(int64_t n) {
    return WordBytes(n) + (n <= WordSorter<U>::Most() ? 0 : 2 * n * int64_t{sizeof(Item)});
  }

  Sorter(void* memory, int64_t n) : Sorter(memory, n, static_cast<char*>(memory) + WordBytes(n)) {}

  void Run(const keel_call* call, const T* x, int64_t n, int64_t k, T* values, int64_t* places) {
    const int64_t most = WordSorter<U>::Most();
    if (n <= most) {
      words_.Sort(n, [&](int64_t i) { return KeyOf<kOrder>(x[i]); });
      return Give(
          k, [&](int64_t j) { return words_.Place(j); }, x, values, places);
    }
    if (k <= most / kSelected) return Select(call, x, n, k, values, places);
    const int64_t kept = Keep(call, x, n, n / 2 < k ? kLeading - 1 : LastDigit(call, x, n, k));
    if (Cancelled(call)) return;
    if (kept <= most) {
      words_.Sort(kept, [&](int64_t i) { return items_[i].key; });
      return Give(
          k, [&](int64_t j) { return items_[words_.Place(j)].place; }, x, values, places);
    }
    Base::SortByDigits(call, kept);
    if (Cancelled(call)) return;
    for (int64_t i = 0; i < k; i++) {
      const Item& item = items_[i];
      places[i] = static_cast<int64_t>(item.place);
      if (!FromKey<kOrder>(item.key, &values[i])) values[i] = x[places[i]];
    }
  }

 private:
  // Select and the radix sort share the memory behind the words: a row takes one of them.
  Sorter(void* words, int64_t n, void* rest)
      : Base(rest, n), words_(words), candidates_(static_cast<int64_t*>(rest)) {}
  static int64_t WordBytes(int64_t n) { return WordSorter<U>::Bytes(std::min(n, WordSorter<U>::Most())); }

  template <class PlaceAt>
  static void Give(int64_t k, PlaceAt place, const T* x, T* values, int64_t* places) {
    for (int64_t j = 0; j < k; j++) {
      places[j] = static_cast<int64_t>(place(j));
      values[j] = x[places[j]];
    }
  }
  // The best k of the first kSelected * k elements; then, again and again, of these and of others that come
  // before the last of them.
  void Select(const keel_call* call, const T* x, int64_t n, int64_t k, T* values, int64_t* places) {
    constexpr bool kMax = kOrder == Order::kGreatest;
    constexpr int64_t kBlock = 32;
    const int64_t most = kSelected * k;
    int64_t* kept = candidates_;
    for (int64_t i = 0; i < most; i++) kept[i] = i;
    int64_t have = most;
    const auto select = [&] {
      words_.Sort(have, [&](int64_t i) { return KeyOf<kOrder>(x[kept[i]]); });
      for (int64_t j = 0; j < k; j++) places[j] = kept[words_.Place(j)];
      std::copy(places, places + k, kept);
      have = k;
      return Widen(x[kept[k - 1]]);
    };
    Compute<T> limit = select();
    InChunks(call, most, n, 2, [&](int64_t begin, int64_t end) {
      for (; begin < end; begin += kBlock) {
        const int64_t m = std::min(kBlock, end - begin);
        if (!AnyBefore<kMax, false>(x + begin, m, limit)) continue;
        if (have + m > most) limit = select();
        for (int64_t i = begin; i < begin + m; i++) {
          kept[have] = i;
          have += Before<kMax>(Widen(x[i]), limit);
        }
      }
    });
    select();
    for (int64_t j = 0; j < k; j++) values[j] = x[places[j]];
  }

  static size_t LeadingOf(U key) { return static_cast<size_t>(key >> kTop); }

  // The leading bits of the k-th key.
  static size_t LastDigit(const keel_call* call, const T* x, int64_t n, int64_t k) {
    std::array<I, kLeading> counts = {};
    InChunks(call, 0, n, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) counts[LeadingOf(KeyOf<kOrder>(x[i]))]++;
    });
    size_t last = 0;
    for (int64_t left = k; last < kLeading - 1; last++)
      if ((left -= static_cast<int64_t>(counts[last])) <= 0) break;
    return last;
  }

  // Collects the elements whose leading bits are at most `last`; returns their number.
  int64_t Keep(const keel_call* call, const T* x, int64_t n, size_t last) {
    int64_t kept = 0;
    InChunks(call, 0, n, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const U key = KeyOf<kOrder>(x[i]);
        items_[kept] = {key, static_cast<I>(i)};
        kept += LeadingOf(key) <= last;
      }
    });
    return kept;
  }

  WordSorter<U> words_;
  int64_t* candidates_;
};

}  // namespace keel_cpu
