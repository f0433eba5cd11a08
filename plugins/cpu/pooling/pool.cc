// pool.cc: max_pool, max_pool_index and avg_pool over any number of image dims.
//
// A row of results (along the last image dim) is computed at once: for each window cell the positions that
// see the image are a range, over which a plain loop without bounds checks vectorises.
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "plugins/cpu/common.h"
#include "plugins/cpu/conv/window.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/pooling/loops.h"

namespace keel_cpu {
namespace {

constexpr int64_t kMostCells = 64;

struct Pool {
  Window w;
  int64_t hi[kMaxImage] = {};
  bool count_pad = false, column_major = false;
};

Pool ReadPool(const Node& node) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  const Dims hi = node.List("hi");
  Pool p;
  p.w = ReadWindow(node, DimsOf(x), DimsOf(y));
  std::copy(hi.begin(), hi.end(), p.hi);
  return p;
}

// Calls f(image index, place, first result of the row, begin, end) for parts of all rows of results.
template <class F>
void EachRow(const keel_call* call, const Window& w, F&& f) {
  if (call->count == 0) return;
  const int last = w.rank - 1;
  const int64_t images = call->out[0]->shape[0] * call->out[0]->shape[1], rows = Product(w.out, last);
  ParallelPieces(call, images * rows, w.out[last], 4 * w.Cells(w.window),
                 [&](int64_t r, int64_t begin, int64_t end) {
                   int64_t place[kMaxImage];
                   Unravel(r % rows, w.out, last, place);
                   f(r / rows, place, r * w.out[last], begin, end);
                 });
}
// The same for each window cell of a part of a row, as EachCell; checks for cancellation if the window is
// large.
template <class F>
void EachCellOf(const keel_call* call, const Window& w, const int64_t* place, int64_t begin, int64_t end,
                F&& f) {
  const bool looks = (end - begin) * w.Cells(w.window) > kChunkCost;
  EachCell(w, place, [&](int64_t, int64_t at, int64_t first, int64_t m, int64_t step) {
    const int64_t from = std::max(first, begin), to = std::min(first + m, end);
    if (from < to && !(looks && Cancelled(call))) f(at + (from - first) * step, from, to - from, step);
  });
}

// The two steps for a window, if its rows of results are short enough for them.
std::optional<PoolImage> TwoSteps(const Window& w) {
  if (w.rank != 2) return {};
  const int64_t cells = (w.out[1] - 1) * w.stride[1] + w.Reach(1);
  const PoolImage p = {w.image[0],  w.image[1],  w.window[0],
                       w.stride[0], w.dil[0],    w.lo[0],
                       w.window[1], w.stride[1], w.dil[1],
                       w.lo[1],     w.out[1],    (cells + w.stride[1] - 1) / w.stride[1] * w.stride[1]};
  const bool fits = p.pitch <= PoolImage::kRoom && w.window[1] * w.dil[1] + 64 <= PoolImage::kSlack &&
                    w.window[0] <= PoolImage::kMostRows;
  return fits ? std::optional(p) : std::nullopt;
}
// Calls done(first row, rows, y) for groups of rows of results, once they are pooled.
template <class F>
void PoolGroups(const keel_call* call, const Window& w, const PoolImage& p, PoolRowsLoop loop, F&& done) {
  const int64_t rows = w.out[0], together = std::clamp<int64_t>(PoolImage::kRoom / p.pitch, 1, rows);
  const int64_t groups = (rows + together - 1) / together, images = call->count / (rows * p.n);
  const int64_t cost = together * p.n * (w.window[0] + w.window[1]);
  ParallelFor(call, images * groups, cost, [&](int64_t begin, int64_t end) {
    float work[2 * (PoolImage::kRoom + PoolImage::kSlack)];
    for (int64_t g = begin; g < end; g++) {
      const int64_t image = g / groups, first = g % groups * together,
                    last = std::min(rows, first + together);
      float* y = Out<float>(call, 0) + (image * rows + first) * p.n;
      loop(p, In<float>(call, 0) + image * p.height * p.width, first, last, work, y);
      done(first, last - first, y);
    }
  });
}

template <class V>
constexpr V kLeast = std::numeric_limits<V>::has_infinity ? -std::numeric_limits<V>::infinity()
                                                          : std::numeric_limits<V>::lowest();

template <class T>
keel_rc RunMaxPool(const keel_call* call) {
  using V = Compute<T>;
  const Window& w = State<Pool>(call).w;
  if constexpr (std::is_same_v<T, float>)
    if (const auto steps = TwoSteps(w); steps && call->count > 0) {
      PoolGroups(call, w, *steps, PoolRows().max, [](int64_t, int64_t, float*) {});
      return Done(call);
    }
  const int64_t pixels = w.Cells(w.image);
  EachRow(call, w, [&](int64_t image, const int64_t* place, int64_t result, int64_t begin, int64_t end) {
    const T* x = In<T>(call, 0) + image * pixels;
    T* y = Out<T>(call, 0) + result;
    T least;
    Narrow(kLeast<V>, least);
    std::fill(y + begin, y + end, least);
    EachCellOf(call, w, place, begin, end, [&](int64_t at, int64_t first, int64_t m, int64_t step) {
      const T* p = x + at;
      T* q = y + first;
      WithUsual<1, 2>(step, [&](auto by) {
        for (int64_t i = 0; i < m; i++) {
          const V old = Widen(q[i]), now = Widen(p[i * by]);
          Narrow(now > old || now != now ? now : old, q[i]);
        }
      });
    });
  });
  return Done(call);
}

int64_t ColumnMajor(const Window& w, int64_t offset) {
  int64_t index[kMaxImage], at = 0;
  Unravel(offset, w.image, w.rank, index);
  for (int d = w.rank - 1; d >= 0; d--) at = at * w.image[d] + index[d];
  return at;
}

// For results [begin, end) of a row: the index of the image cell with the maximum; the first of equals, the
// first NaN if any.
template <class T>
void IndexRow(const keel_call* call, const Window& w, const int64_t* place, const T* x, int64_t begin,
              int64_t end, int64_t* y) {
  std::fill(y + begin, y + end, int64_t{-1});
  EachCellOf(call, w, place, begin, end, [&](int64_t at, int64_t first, int64_t m, int64_t step) {
    for (int64_t i = 0; i < m; i++) {
      const int64_t cell = at + i * step, old = y[first + i];
      const auto now = Widen(x[cell]);
      const auto best = Widen(x[old < 0 ? cell : old]);
      if (old < 0 || now > best || (now != now && best == best)) y[first + i] = cell;
    }
  });
}
// Whether the window is small and never includes padding.
bool IsSmallUnpadded(const Window& w) {
  bool whole = w.Cells(w.window) <= kMostCells;
  for (int d = 0; d < w.rank; d++)
    whole = whole && w.lo[d] == 0 && w.At(d, w.out[d] - 1, w.window[d] - 1) < w.image[d];
  return whole;
}

// For windows that are always within the image: cell offsets are the same at each position.
void IndexWhole(const keel_call* call, const Pool& s, const float* x, int64_t* y) {
  static const IndexOfCells loop = IndexOfCellsLoop();
  const Window& w = s.w;
  const int last = w.rank - 1;
  const int64_t n = w.out[last], rows = Product(w.out, last), pixels = w.Cells(w.image);
  int64_t at[kMostCells], cells = 0;
  constexpr int64_t kFirst[kMaxImage] = {};
  EachCell(w, kFirst, [&](int64_t, int64_t offset, int64_t, int64_t, int64_t) { at[cells++] = offset; });
  ParallelFor(call, call->count / n, n * cells, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      int64_t place[kMaxImage], base = 0;
      Unravel(r % rows, w.out, last, place);
      for (int d = 0; d < last; d++) base = (base + place[d] * w.stride[d]) * w.image[d + 1];
      const int64_t image = r / rows * pixels;
      loop(x + image + base, at, cells, w.stride[last], n, y + r * n);
      for (int64_t i = r * n; i < r * n + n; i++)
        y[i] = image + (s.column_major ? ColumnMajor(w, base + y[i]) : base + y[i]);
    }
  });
}

template <class T>
keel_rc RunMaxPoolIndex(const keel_call* call) {
  const Pool& s = State<Pool>(call);
  if (call->count == 0) return KEEL_OK;
  if constexpr (std::is_same_v<T, float>)
    if (IsSmallUnpadded(s.w)) return IndexWhole(call, s, In<T>(call, 0), Out<int64_t>(call, 0)), Done(call);
  const int64_t pixels = s.w.Cells(s.w.image);
  EachRow(call, s.w, [&](int64_t image, const int64_t* place, int64_t result, int64_t begin, int64_t end) {
    int64_t* y = Out<int64_t>(call, 0) + result;
    IndexRow(call, s.w, place, In<T>(call, 0) + image * pixels, begin, end, y);
    for (int64_t i = begin; i < end; i++)
      if (y[i] >= 0) y[i] = image * pixels + (s.column_major ? ColumnMajor(s.w, y[i]) : y[i]);
  });
  return Done(call);
}

// The number of window cells at a position along dim d that count: those in the image and, with count_pad, in
// its padding, but never those beyond the padding.
int64_t Counted(const Pool& s, int d, int64_t o) {
  const int64_t low = s.count_pad ? -s.w.lo[d] : 0, high = s.w.image[d] + (s.count_pad ? s.hi[d] : 0);
  int64_t n = 0;
  for (int64_t k = 0; k < s.w.window[d]; k++) n += s.w.At(d, o, k) >= low && s.w.At(d, o, k) < high;
  return n;
}

bool IsPowerOfTwo(float count) { return std::has_single_bit(static_cast<uint64_t>(count)); }

template <class T>
keel_rc RunAvgPool(const keel_call* call) {
  using V = Compute<T>;
  const Pool& s = State<Pool>(call);
  const int last = s.w.rank - 1;
  const int64_t n = s.w.out[last], pixels = s.w.Cells(s.w.image);
  std::vector<V> counts(static_cast<size_t>(n));
  for (int64_t o = 0; o < n; o++) counts[static_cast<size_t>(o)] = static_cast<V>(Counted(s, last, o));
  if constexpr (std::is_same_v<T, float>)
    if (const auto steps = TwoSteps(s.w); steps && call->count > 0) {
      std::vector<float> by;                                   // cells that each result of an image counts
      bool exact = std::ranges::all_of(counts, IsPowerOfTwo);  // so are the reciprocals
      for (int64_t r = 0; r < s.w.out[0]; r++) {
        const auto rows = static_cast<float>(Counted(s, 0, r));
        exact = exact && IsPowerOfTwo(rows);
        for (const float count : counts) by.push_back(rows * count);
      }
      if (exact)
        for (float& count : by) count = 1 / count;
      const auto apply = exact ? PoolRows().multiply : PoolRows().divide;
      PoolGroups(call, s.w, *steps, PoolRows().sum,
                 [&](int64_t first, int64_t rows, float* y) { apply(y, by.data() + first * n, rows * n); });
      return Done(call);
    }
  EachRow(call, s.w, [&](int64_t image, const int64_t* place, int64_t result, int64_t begin, int64_t end) {
    constexpr int64_t kChunk = 512;  // sums are computed for so many results of the row at once
    const T* x = In<T>(call, 0) + image * pixels;
    T* y = Out<T>(call, 0) + result;
    int64_t rows = 1;
    for (int d = 0; d < last; d++) rows *= Counted(s, d, place[d]);
    const V* count = counts.data();
    for (int64_t part = begin; part < end; part += kChunk) {
      const int64_t stop = std::min(end, part + kChunk);
      V sums[kChunk];
      std::fill(sums, sums + (stop - part), V{0});
      EachCellOf(call, s.w, place, part, stop, [&](int64_t at, int64_t first, int64_t m, int64_t step) {
        WithUsual<1, 2>(step, [&](auto by) {
          for (int64_t o = 0; o < m; o++) sums[first - part + o] += Widen(x[at + o * by]);
        });
      });
      for (int64_t o = part; o < stop; o++) Narrow(sums[o - part] / (static_cast<V>(rows) * count[o]), y[o]);
    }
  });
  return Done(call);
}

keel_rc PrepareMaxPool(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  Pool p = ReadPool(node);
  Complete(&p.w);
  return Keep(launch, p, VisitAll(keel_dt_of(&x), []<class T>() -> Run { return RunMaxPool<T>; }));
}
keel_rc PrepareMaxPoolIndex(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  Pool p = ReadPool(node);
  p.column_major = node.Flag("column_major");
  Complete(&p.w);
  return Keep(launch, p, VisitAll(keel_dt_of(&x), []<class T>() -> Run { return RunMaxPoolIndex<T>; }));
}
keel_rc PrepareAvgPool(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  Pool p = ReadPool(node);
  p.count_pad = node.Flag("count_pad");
  Complete(&p.w);
  return Keep(launch, p, VisitFloats(keel_dt_of(&x), []<class T>() -> Run { return Guard<RunAvgPool<T>>; }));
}

constexpr keel_impl kImpls[] = {
    Impl("max_pool", "loop max_pool", Prepare<PrepareMaxPool>),
    Impl("max_pool_index", "loop max_pool_index", Prepare<PrepareMaxPoolIndex>),
    Impl("avg_pool", "loop avg_pool", Prepare<PrepareAvgPool>),
};

}  // namespace

Impls PoolImpls() { return kImpls; }

}  // namespace keel_cpu
