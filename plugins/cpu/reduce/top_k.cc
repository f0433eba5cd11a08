// top_k.cc: the k first elements of each row, with their places: NaN first, then the greatest (or least);
// equal ones by place. Few of them are found by insertion; more by sorting (sorter.h).
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/reduce/sorter.h"

namespace keel_cpu {
namespace {

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

// How many lanes have memory of their own to sort in; 0: rows are not sorted.
struct TopK {
  int64_t lanes;
};

// Lane i of a few takes the rows i, i + lanes ...
template <Order kOrder, class T, class I>
void SortRows(const keel_call* call, int64_t rows, int64_t n, int64_t k) {
  using RowSorter = Sorter<kOrder, T, I>;
  const int64_t lanes = State<TopK>(call).lanes;
  ParallelFor(call, lanes, rows / lanes * n * 16, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; lane++) {
      RowSorter sorter(static_cast<char*>(call->scratch) + lane * RowSorter::Bytes(n), n);
      for (int64_t r = lane; r < rows && !Cancelled(call); r += lanes)
        sorter.Run(call, In<T>(call, 0) + r * n, n, k, Out<T>(call, 0) + r * k,
                   Out<int64_t>(call, 1) + r * k);
    }
  });
}

// Rows are sorted in groups where words have room for their keys.
template <class T>
constexpr bool kGroups = sizeof(T) < sizeof(int64_t);

template <Order kOrder, class T>
void SortGroups(const keel_call* call, int64_t rows, int64_t n, int64_t k) {
  const int64_t lanes = FindSort().lanes;
  ParallelFor(call, (rows + lanes - 1) / lanes, lanes * n * 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin * lanes; r < std::min(rows, end * lanes); r += lanes)
      SortGroup<kOrder>(In<T>(call, 0) + r * n, std::min(lanes, rows - r), n, k, Out<T>(call, 0) + r * k,
                        Out<int64_t>(call, 1) + r * k);
  });
}
template <Order kOrder, class T>
void SortRows(const keel_call* call, int64_t rows, int64_t n, int64_t k) {
  if constexpr (kGroups<T>)
    if (n <= kFewWords) return SortGroups<kOrder, T>(call, rows, n, k);
  if (n <= UINT32_MAX) return SortRows<kOrder, T, uint32_t>(call, rows, n, k);
  SortRows<kOrder, T, uint64_t>(call, rows, n, k);
}

template <bool kMax, class T>
keel_rc RunTopK(const keel_call* call) {
  const keel_tensor& x = *call->in[0];
  const int64_t n = x.shape[x.ndim - 1], k = call->out[0]->shape[x.ndim - 1],
                rows = Product(x.shape, x.ndim - 1);
  if (k == 0 || rows == 0) return KEEL_OK;
  constexpr Order kOrder = kMax ? Order::kGreatest : Order::kLeast;
  if (k > kFewest || (kGroups<T> && n <= kFewWords))
    SortRows<kOrder, T>(call, rows, n, k);
  else
    ParallelFor(call, rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++)
        Insert<kMax>(call, In<T>(call, 0) + r * n, n, k, Out<T>(call, 0) + r * k,
                     Out<int64_t>(call, 1) + r * k);
    });
  return Done(call);
}
template <Order kOrder, class T>
keel_rc RunSort(const keel_call* call) {
  const keel_tensor& x = *call->in[0];
  const int64_t n = x.shape[x.ndim - 1], rows = Product(x.shape, x.ndim - 1);
  if (n > 0 && rows > 0) SortRows<kOrder, T>(call, rows, n, n);
  return Done(call);
}

template <class T>
int64_t BytesToSort(int64_t n) {
  return n <= UINT32_MAX ? Sorter<Order::kLeast, T, uint32_t>::Bytes(n)
                         : Sorter<Order::kLeast, T, uint64_t>::Bytes(n);
}

// runs: the functions for each direction of T. sorts: whether rows need memory to be sorted in.
template <class F>
keel_rc KeepRows(const Node& node, bool sorts, F runs, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  const int64_t n = x.shape[x.ndim - 1], rows = Product(x.shape, x.ndim - 1);
  const TopK state = {sorts ? std::min<int64_t>(Budget(), rows) : 0};
  const auto [run, bytes] = VisitAll(keel_dt_of(&x), [&]<class T>() -> std::pair<Run, int64_t> {
    return {runs.template operator()<T>(), BytesToSort<T>(n)};
  });
  return Keep(launch, state, run, static_cast<uint64_t>(state.lanes * bytes));
}
keel_rc PrepareTopK(const Node& node, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  const bool largest = node.Flag("largest");
  const auto runs = [=]<class T>() { return largest ? Guard<RunTopK<true, T>> : Guard<RunTopK<false, T>>; };
  return KeepRows(node, y.shape[y.ndim - 1] > kFewest, runs, launch);
}
keel_rc PrepareSort(const Node& node, keel_launch* launch) {
  const bool descending = node.Flag("descending");
  const auto runs = [=]<class T>() {
    return descending ? Guard<RunSort<Order::kGreatest, T>> : Guard<RunSort<Order::kUpwards, T>>;
  };
  return KeepRows(node, true, runs, launch);
}
bool AlongRows(const Node& node) {  // others run as the body: transposed
  return node.In(0).ndim > 0 && node.Int("axis") == node.In(0).ndim - 1;
}

constexpr keel_impl kImpls[] = {
    Impl("top_k", "insertion, merge or radix sort", Prepare<PrepareTopK>),
    Impl("sort", "merge or radix sort", Prepare<PrepareSort>, 0, nullptr, 0, Match<AlongRows>),
};

}  // namespace

Impls TopKImpls() { return kImpls; }

}  // namespace keel_cpu
