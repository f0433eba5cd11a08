// top_k.cc: the k first elements of each row, with their places: NaN first, then the greatest (or least);
// equal ones by place. Few of them are found by insertion; more by a radix sort of keys, unsigned numbers
// that have the elements' order, after keys whose leading bits are too high have been left out.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

// Whether a is ordered before b.
template <bool kMax, class T>
bool Before(T a, T b) {
  if (a != a || b != b) return a != a && b == b;
  return kMax ? b < a : a < b;
}

// For small k: most elements do not precede the last of the best found so far.
constexpr int64_t kFewest = 16;

// k elements or more are this one, or before it: the k-th of the best in each of kFewest interleaved parts of
// the first elements. It is not NaN.
template <bool kMax, class T>
Compute<T> BoundOf(const T* x, int64_t n, int64_t k) {
  using C = Compute<T>;
  using Limits = std::numeric_limits<C>;
  constexpr int64_t kSeen = 1 << 14;
  constexpr C kMost = Limits::has_infinity ? Limits::infinity() : Limits::max(),
              kLeast = Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
  typedef C V __attribute__((vector_size(16)));  // GCC would take a loop over so few lanes apart
  constexpr int kVectors = kFewest * static_cast<int>(sizeof(C)) / 16;
  V lanes[kVectors];
  for (V& lane : lanes) lane = V{} + (kMax ? kLeast : kMost);
  for (int64_t i = 0, end = std::min(n, kSeen) / kFewest; i < end; i++) {
    C now[kFewest];
    V next[kVectors];
    for (int64_t l = 0; l < kFewest; l++) now[l] = Widen(x[i * kFewest + l]);
    std::memcpy(next, now, sizeof next);
    for (int v = 0; v < kVectors; v++)
      lanes[v] = (kMax ? next[v] > lanes[v] : next[v] < lanes[v]) ? next[v] : lanes[v];
  }
  C best[kFewest];
  std::memcpy(best, lanes, sizeof best);
  std::nth_element(best, best + k - 1, best + kFewest, [](C a, C b) { return kMax ? b < a : a < b; });
  return best[k - 1];
}
// Whether an element of x is NaN, before `limit`, or equal to it if equal ones count.
template <bool kMax, bool kEqual, class T>
bool AnyBefore(const T* x, int64_t n, Compute<T> limit) {
  int any = 0;
  for (int64_t i = 0; i < n; i++) {
    const Compute<T> now = Widen(x[i]);
    any |= kEqual ? !(kMax ? now < limit : now > limit) : !(kMax ? now <= limit : now >= limit);
  }
  return any != 0;
}
template <bool kMax, class T>
void Insert(const keel_call* call, const T* x, int64_t n, int64_t k, T* values, int64_t* places) {
  constexpr int64_t kBlock = 32;
  Compute<T> best[kFewest];
  Compute<T> limit = BoundOf<kMax>(x, n, k);  // then the last of the best, once there are k
  int64_t have = 0;
  const auto take = [&](int64_t i) {
    const Compute<T> now = Widen(x[i]);
    if (have == k ? !Before<kMax>(now, limit) : Before<kMax>(limit, now)) return;
    int64_t at = have < k ? have++ : k - 1;
    for (; at > 0 && Before<kMax>(now, best[at - 1]); at--)
      best[at] = best[at - 1], places[at] = places[at - 1];
    best[at] = now;
    places[at] = i;
    if (have == k) limit = best[k - 1];
  };
  const bool all = InChunks(call, 0, n, 2, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kBlock) {
      const int64_t m = std::min(kBlock, end - begin);
      if (have == k ? AnyBefore<kMax, false>(x + begin, m, limit)
                    : AnyBefore<kMax, true>(x + begin, m, limit))
        for (int64_t i = begin; i < begin + m; i++) take(i);
    }
  });
  for (int64_t i = 0; all && i < k; i++) values[i] = x[places[i]];
}

template <size_t kSize>
using Unsigned =
    std::tuple_element_t<std::bit_width(kSize) - 1, std::tuple<uint8_t, uint16_t, uint32_t, uint64_t>>;

template <bool kMax, class T>
Unsigned<sizeof(T)> KeyOf(T x) {
  using U = Unsigned<sizeof(T)>;
  constexpr U kSign = U{1} << (8 * sizeof(T) - 1);
  auto key = std::bit_cast<U>(x);
  if constexpr (!std::is_integral_v<Compute<T>>) {
    if (Widen(x) != Widen(x)) return 0;  // no number has this key
    if (key == kSign) key = 0;           // -0 equals 0
    key = static_cast<U>(key & kSign ? ~key : key | kSign);
  } else if constexpr (std::is_signed_v<T>) {
    key ^= kSign;
  }
  return kMax ? static_cast<U>(~key) : key;
}

// The element with this key. NaN and zeros have lost bits: false.
template <bool kMax, class T, class U>
bool FromKey(U key, T* x) {
  constexpr U kSign = U{1} << (8 * sizeof(T) - 1);
  const U order = kMax ? static_cast<U>(~key) : key;
  if constexpr (!std::is_integral_v<Compute<T>>) {
    *x = std::bit_cast<T>(static_cast<U>(order & kSign ? order ^ kSign : ~order));
    return key != 0 && order != kSign;
  } else {
    *x = static_cast<T>(std::is_signed_v<T> ? order ^ kSign : order);
    return true;
  }
}

// A radix sort of items: keys with places, which I counts. The same for all dtypes of one size.
template <class U, class I>
class ItemSorter {
 protected:
  static constexpr int kBits = 8 * sizeof(U), kDigit = 8;
  static constexpr size_t kBuckets = size_t{1} << kDigit;
  struct Item {
    U key;
    I place;
  };
  using Counts = std::array<I, kBuckets>;  // by digit

  // `memory` holds twice n items.
  ItemSorter(void* memory, int64_t n) : items_(static_cast<Item*>(memory)), other_(items_ + n) {}

  void SelectAndSort(int64_t n, int64_t k) {
    const auto before = [](const Item& a, const Item& b) {
      return a.key != b.key ? a.key < b.key : a.place < b.place;
    };
    if (k < n) std::nth_element(items_, items_ + k, items_ + n, before);
    std::sort(items_, items_ + k, before);
  }

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

// Sorts rows of up to `n` elements; I counts them.
template <bool kMax, class T, class I>
class Sorter : private ItemSorter<Unsigned<sizeof(T)>, I> {
  using U = Unsigned<sizeof(T)>;
  using Base = ItemSorter<U, I>;
  using Base::items_;
  using typename Base::Item;
  static constexpr int kTop = Base::kBits - std::min(Base::kBits, 11);
  static constexpr size_t kLeading = size_t{1} << std::min(Base::kBits, 11);

 public:
  static constexpr int64_t kBytes = 2 * sizeof(Item);  // of memory, for each element of a row

  Sorter(void* memory, int64_t n) : Base(memory, n) {}

  void Run(const keel_call* call, const T* x, int64_t n, int64_t k, T* values, int64_t* places) {
    const bool is_short = n < 2048;  // less work than counting digits
    const int64_t kept = Keep(call, x, n, is_short || n / 2 < k ? kLeading - 1 : LastDigit(call, x, n, k));
    is_short ? Base::SelectAndSort(kept, k) : Base::SortByDigits(call, kept);
    if (Cancelled(call)) return;
    for (int64_t i = 0; i < k; i++) {
      const Item& item = items_[i];
      places[i] = static_cast<int64_t>(item.place);
      if (!FromKey<kMax>(item.key, &values[i])) values[i] = x[places[i]];
    }
  }

 private:
  static size_t LeadingOf(U key) { return static_cast<size_t>(key >> kTop); }

  // The leading bits of the k-th key.
  static size_t LastDigit(const keel_call* call, const T* x, int64_t n, int64_t k) {
    std::array<I, kLeading> counts = {};
    InChunks(call, 0, n, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) counts[LeadingOf(KeyOf<kMax>(x[i]))]++;
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
        const U key = KeyOf<kMax>(x[i]);
        items_[kept] = {key, static_cast<I>(i)};
        kept += LeadingOf(key) <= last;
      }
    });
    return kept;
  }
};

// How many lanes have memory of their own to sort in; 0: rows are not sorted.
struct TopK {
  int64_t lanes;
};

// Lane i of a few takes the rows i, i + lanes ...
template <bool kMax, class T, class I>
void SortRows(const keel_call* call, int64_t rows, int64_t n, int64_t k) {
  using RowSorter = Sorter<kMax, T, I>;
  const int64_t lanes = State<TopK>(call).lanes;
  ParallelFor(call, lanes, rows / lanes * n * 16, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; lane++) {
      RowSorter sorter(static_cast<char*>(call->scratch) + lane * n * RowSorter::kBytes, n);
      for (int64_t r = lane; r < rows && !Cancelled(call); r += lanes)
        sorter.Run(call, In<T>(call, 0) + r * n, n, k, Out<T>(call, 0) + r * k,
                   Out<int64_t>(call, 1) + r * k);
    }
  });
}

template <bool kMax, class T>
keel_rc RunTopK(const keel_call* call) {
  const keel_tensor& x = *call->in[0];
  const int64_t n = x.shape[x.ndim - 1], k = call->out[0]->shape[x.ndim - 1],
                rows = Product(x.shape, x.ndim - 1);
  if (k == 0 || rows == 0) return KEEL_OK;
  if (k <= kFewest)
    ParallelFor(call, rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++)
        Insert<kMax>(call, In<T>(call, 0) + r * n, n, k, Out<T>(call, 0) + r * k,
                     Out<int64_t>(call, 1) + r * k);
    });
  else if (n <= UINT32_MAX)
    SortRows<kMax, T, uint32_t>(call, rows, n, k);
  else
    SortRows<kMax, T, uint64_t>(call, rows, n, k);
  return Done(call);
}

template <class T>
int64_t BytesToSort(int64_t n) {
  const int64_t each =
      n <= UINT32_MAX ? Sorter<true, T, uint32_t>::kBytes : Sorter<true, T, uint64_t>::kBytes;
  return n * each;
}

keel_rc PrepareTopK(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  const int64_t n = x.shape[x.ndim - 1], rows = Product(x.shape, x.ndim - 1);
  const bool largest = node.Flag("largest");
  TopK state = {y.shape[y.ndim - 1] > kFewest ? std::min<int64_t>(Budget(), rows) : 0};
  const auto [run, bytes] = VisitAll(keel_dt_of(&x), [&]<class T>() -> std::pair<Run, int64_t> {
    return {largest ? Guard<RunTopK<true, T>> : Guard<RunTopK<false, T>>, BytesToSort<T>(n)};
  });
  return Keep(launch, state, run, static_cast<uint64_t>(state.lanes * bytes));
}

constexpr keel_impl kImpls[] = {Impl("top_k", "insertion or radix sort", Prepare<PrepareTopK>)};

}  // namespace

Impls TopKImpls() { return kImpls; }

}  // namespace keel_cpu
