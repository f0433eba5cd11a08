// permute.cc: strided copies: transpose, broadcast_to, slices, pad, reverse. The operand is read (for pad:
// the result is written) with a step per dim; adjacent dims that both sides traverse alike are merged; a
// transposed pair of dims is copied in blocks, so that both sides stay in the cache.
#include <algorithm>
#include <numeric>

#include "plugins/cpu/elementwise/broadcast.h"
#include "plugins/cpu/parallel/fetch.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/shape/copy_loops.h"
#include "plugins/cpu/shape/fill_loops.h"
#include "plugins/cpu/shape/index.h"
#include "plugins/cpu/shape/transpose.h"

namespace keel_cpu {
namespace {

// Row-major steps of a shape.
void Steps(const keel_tensor& t, int64_t* steps) {
  int64_t step = 1;
  for (int d = t.ndim - 1; d >= 0; d--) {
    steps[d] = step;
    step *= t.shape[d];
  }
}

// Four elements are loaded before they are stored: the compiler cannot exclude that y overlaps x.
template <class T>
void CopyEvery(const T* x, int64_t step, T* y, int64_t n) {
  if (step == 2) {  // vectorised
    for (int64_t i = 0; i < n; i++) y[i] = x[2 * i];
    return;
  }
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, x += 4 * step) {
    const T some[] = {x[0], x[step], x[2 * step], x[3 * step]};
    for (int k = 0; k < 4; k++) y[i + k] = some[k];
  }
  for (; i < n; i++, x += step) y[i] = *x;
}

template <class T>
void CopyRow(const T* x, int64_t sx, T* y, int64_t sy, int64_t n) {
  if (sx == 1 && sy == 1) {
    std::copy(x, x + n, y);
  } else if (sx == 0 && sy == 1) {
    FillRow(y, n, *x);
  } else if (sy == 1) {
    CopyEvery(x, sx, y, n);
  } else {
    for (int64_t i = 0; i < n; i++) y[i * sy] = x[i * sx];
  }
}

// The last two dims as a matrix: x is read down its columns, in squares of 16.
template <class T>
void CopyTransposed(const T* x, const int64_t* sx, T* y, const int64_t* sy, int64_t rows, int64_t cols,
                    bool streams) {
  constexpr int64_t kSide = 16;
  if (sx[0] == 1 && sy[1] == 1) return Transpose(x, sx[1], cols, rows, y, sy[0], streams);
  for (int64_t r = 0; r < rows; r += kSide)
    for (int64_t c = 0; c < cols; c += kSide)
      for (int64_t i = r, ie = std::min(rows, r + kSide); i < ie; i++)
        for (int64_t j = c, je = std::min(cols, c + kSide); j < je; j++)
          y[i * sy[0] + j * sy[1]] = x[i * sx[0] + j * sx[1]];
}

// Copies along a walk: operand 0 is read, 1 is written.
//
// Here x is contiguous in dim d, which is not the last one: matrices of the two dims, read down their
// columns.
template <class T>
void CopyMatrices(const keel_call* call, const Walk<2>& w, int d, const T* x, T* y) {
  const int last = w.rank - 1;
  const int64_t pair_x[2] = {w.steps[0][d], w.steps[0][last]}, pair_y[2] = {w.steps[1][d], w.steps[1][last]};
  const int64_t rows = w.dims[d], cols = w.dims[last];
  Walk<2> outer = w;  // the remaining dims, plus a dummy one for the inner loop
  outer.rank = 0;
  for (int e = 0; e < last; e++) {
    if (e == d) continue;
    outer.dims[outer.rank] = w.dims[e];
    for (int i = 0; i < 2; i++) outer.steps[i][outer.rank] = w.steps[i][e];
    outer.rank++;
  }
  outer.dims[outer.rank++] = 1;
  // Large matrices are copied in cache-sized tiles.
  constexpr int64_t kTile = 1 << 19, kTall = 4096, kWide = 64;
  const bool one = rows * cols <= kTile / 8;
  const int64_t tall = one ? rows : std::min(rows, std::max(kTall, kTile / cols / kWide * kWide));
  const int64_t wide = one ? cols : std::min(cols, std::max(kWide, kTile / tall / kWide * kWide));
  const int64_t across = (cols + wide - 1) / wide, tiles = (rows + tall - 1) / tall * across;
  const bool streams = Streams(call, 0, outer.Rows() * rows * cols * static_cast<int64_t>(sizeof(T)));
  ParallelFor(call, outer.Rows() * tiles, tall * wide * 2, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) {
      const int64_t r = u % tiles / across * tall, c = u % tiles % across * wide;
      outer.Rows(u / tiles, u / tiles + 1, [&](int64_t, const int64_t* at) {
        CopyTransposed(x + at[0] + r * pair_x[0] + c * pair_x[1], pair_x,
                       y + at[1] + r * pair_y[0] + c * pair_y[1], pair_y, std::min(tall, rows - r),
                       std::min(wide, cols - c), streams);
      });
    }
    if (streams) StreamFence();
  });
}
// Rows of adjacent elements.
template <class T>
void CopyRows(const keel_call* call, const Walk<2>& w, const T* x, T* y) {
  constexpr int64_t kRowsAhead = 6, kSize = sizeof(T);
  const int64_t bytes = w.Inner() * kSize, from = w.steps[0][w.rank - 2] * kSize;
  const bool few = w.dims[w.rank - 2] < 4 * kRowsAhead;
  const bool far = w.Rows() * bytes > (few ? kFetchedByCopiesOfFew : kFetchedByCopies);
  const bool fetches = far && from > bytes && bytes <= 32 * kLine;
  const int64_t to = w.steps[1][w.rank - 2] * kSize, ahead = fetches ? kRowsAhead * from : 0;
  ParallelFor(call, w.Rows(), w.Inner() + 2, [&](int64_t begin, int64_t end) {
    w.Runs(begin, end, [&](const int64_t* at, int64_t n) {
      FindCopyRows()({reinterpret_cast<const char*>(x + at[0]), from},
                     {reinterpret_cast<char*>(y + at[1]), to}, bytes, n, ahead);
    });
  });
}
template <class T>
void Copy(const keel_call* call, const Walk<2>& w, const T* x, T* y) {
  const int64_t n = w.Inner(), sx = w.InnerStep(0), sy = w.InnerStep(1);
  if (sx != 1 && sx != 0)
    for (int d = w.rank - 2; d >= 0; d--)
      if (w.steps[0][d] == 1) return CopyMatrices(call, w, d, x, y);
  if (Pieces(n) > 1) {
    ParallelPieces(call, w.Rows(), n, 4, [&](int64_t row, int64_t begin, int64_t end) {
      w.Rows(row, row + 1, [&](int64_t, const int64_t* at) {
        CopyRow(x + at[0] + begin * sx, sx, y + at[1] + begin * sy, sy, end - begin);
      });
    });
    return;
  }
  if (w.rank > 1 && sx == 1 && sy == 1) return CopyRows(call, w, x, y);
  ParallelFor(call, w.Rows(), n + 2, [&](int64_t begin, int64_t end) {
    w.Rows(begin, end, [&](int64_t, const int64_t* at) { CopyRow(x + at[0], sx, y + at[1], sy, n); });
  });
}

// y in row-major order, x with the given steps from a base element.
template <class T>
keel_rc Gathered(const keel_call* call, const int64_t* steps, int64_t base) {
  const keel_tensor& t = *call->out[0];
  if (call->count == 0) return KEEL_OK;
  int64_t to[KEEL_MAX_RANK];
  Steps(t, to);
  Walk<2> w;
  for (int d = 0; d < t.ndim; d++) AppendDim<2>(&w, t.shape[d], {steps[d], to[d]});
  Copy(call, w, In<T>(call, 0) + base, Out<T>(call, 0));
  return Done(call);
}

template <class T>
keel_rc RunTranspose(const keel_call* call) {
  const Dims& perm = State<Dims>(call);
  int64_t own[KEEL_MAX_RANK], steps[KEEL_MAX_RANK];
  Steps(*call->in[0], own);
  for (size_t d = 0; d < perm.size(); d++) steps[d] = own[perm[d]];
  return Gathered<T>(call, steps, 0);
}
template <class T>
keel_rc RunBroadcastTo(const keel_call* call) {
  const keel_tensor& x = *call->in[0];
  const int shift = call->out[0]->ndim - x.ndim;
  int64_t own[KEEL_MAX_RANK], steps[KEEL_MAX_RANK] = {};
  Steps(x, own);
  for (int d = 0; d < x.ndim; d++) steps[d + shift] = x.shape[d] == 1 ? 0 : own[d];
  return Gathered<T>(call, steps, 0);
}
struct Layouts {
  Dims dims, from, to, order;  // from, to: strides; order: of the dims, outermost in `to` first
};
keel_rc RunLayoutCopy(const keel_call* call) {
  const Layouts& s = State<Layouts>(call);
  Walk<2> w;
  for (int64_t d : s.order) {
    const auto i = static_cast<size_t>(d);
    AppendDim<2>(&w, s.dims[i], {s.from[i], s.to[i]});
  }
  Copy(call, w, In<uint32_t>(call, 0), Out<uint32_t>(call, 0));
  return Done(call);
}
template <class T>
keel_rc RunReverse(const keel_call* call) {
  const keel_tensor& x = *call->in[0];
  int64_t steps[KEEL_MAX_RANK], base = 0;
  Steps(x, steps);
  for (int64_t axis : State<Dims>(call)) {
    base += steps[axis] * (x.shape[axis] - 1);
    steps[axis] = -steps[axis];
  }
  return Gathered<T>(call, steps, base);
}

struct Slice {
  Dims start, step;
};
template <class T>
keel_rc RunSlice(const keel_call* call) {
  const Slice& s = State<Slice>(call);
  int64_t steps[KEEL_MAX_RANK], base = 0;
  Steps(*call->in[0], steps);
  for (size_t d = 0; d < s.start.size(); d++) {
    base += s.start[d] * steps[d];
    // A dim of one element needs no step; a huge one must not overflow.
    steps[d] = call->out[0]->shape[d] <= 1 ? 0 : steps[d] * s.step[d];
  }
  return Gathered<T>(call, steps, base);
}

// The element of x at which a part of the dims of `part` begins: at `start`, clamped so that it lies inside.
template <class I>
int64_t PartBegin(const keel_tensor& x, const keel_tensor& part, const I* start) {
  int64_t steps[KEEL_MAX_RANK], base = 0;
  Steps(x, steps);
  for (int d = 0; d < x.ndim; d++)
    base += steps[d] * std::clamp<int64_t>(start[d], 0, x.shape[d] - part.shape[d]);
  return base;
}
template <class T, class I>
keel_rc RunDynamicSlice(const keel_call* call) {
  const keel_tensor& x = *call->in[0];
  int64_t steps[KEEL_MAX_RANK];
  Steps(x, steps);
  return Gathered<T>(call, steps, PartBegin(x, *call->out[0], In<I>(call, 1)));
}
// The result may share memory with x, and with a u of the same dims, which then replaces all of x.
template <class T, class I>
keel_rc RunDynamicUpdateSlice(const keel_call* call) {
  const keel_tensor &u = *call->in[1], &y = *call->out[0];
  const int64_t count = keel_count(&u);
  T* to = Out<T>(call, 0);
  if (count < call->count && to != In<T>(call, 0))
    CopyBytes(call, to, In<T>(call, 0), call->count * static_cast<int64_t>(sizeof(T)));
  if (count == 0 || to == In<T>(call, 1)) return Done(call);
  int64_t from[KEEL_MAX_RANK], into[KEEL_MAX_RANK];
  Steps(u, from);
  Steps(y, into);
  Walk<2> w;
  for (int d = 0; d < y.ndim; d++) AppendDim<2>(&w, u.shape[d], {from[d], into[d]});
  Copy(call, w, In<T>(call, 1), to + PartBegin(y, u, In<I>(call, 2)));
  return Done(call);
}

struct Pad {
  Dims lo, gap;
};
// Copies rows along a walk with the result as its second operand, and fills the elements before, between and
// after them, so that each element is written once.
template <class T>
void CopyAndFill(const keel_call* call, const Walk<2>& w, const T* x, T* y, int64_t base, T v) {
  const int64_t n = w.Inner(), sx = w.InnerStep(0), sy = w.InnerStep(1), span = (n - 1) * sy + 1;
  int64_t end_of_all = base + span;
  for (int d = 0; d < w.rank - 1; d++) end_of_all += (w.dims[d] - 1) * w.steps[1][d];
  Fill(call, y, base, v);
  ParallelFor(call, w.Rows(), call->count / w.Rows() + 2, [&](int64_t begin, int64_t end) {
    T* done = y + base;
    if (begin > 0)
      w.Rows(begin - 1, begin, [&](int64_t, const int64_t* at) { done = y + base + at[1] + span; });
    w.Rows(begin, end, [&](int64_t, const int64_t* at) {
      T* to = y + base + at[1];
      std::fill(done, sy == 1 ? to : to + span, v);
      CopyRow(x + at[0], sx, to, sy, n);
      done = to + span;
    });
  });
  Fill(call, y + end_of_all, call->count - end_of_all, v);
}
template <class T>
keel_rc RunPad(const keel_call* call) {
  const Pad& s = State<Pad>(call);
  const keel_tensor& x = *call->in[0];
  T* y = Out<T>(call, 0);
  const T v = *In<T>(call, 1);
  int64_t from[KEEL_MAX_RANK], to[KEEL_MAX_RANK], base = 0;
  Steps(x, from);
  Steps(*call->out[0], to);
  Walk<2> w;
  for (int d = 0; d < x.ndim; d++) {
    base += s.lo[d] * to[d];
    AppendDim<2>(&w, x.shape[d], {from[d], x.shape[d] <= 1 ? 0 : to[d] * (s.gap[d] + 1)});
  }
  const int64_t apart = w.rank > 1 ? w.steps[1][0] : w.Inner() * w.InnerStep(1);
  if (keel_count(&x) > 0 && apart <= kPiece) {
    CopyAndFill(call, w, In<T>(call, 0), y, base, v);
    return Done(call);
  }
  Fill(call, y, call->count, v);
  if (keel_count(&x) > 0) Copy(call, w, In<T>(call, 0), y + base);
  return Done(call);
}

#define KEEL_BY_SIZE(F) VisitSize(ItemSize(node.Out(0)), []<class T>() -> Run { return F<T>; })

keel_rc PrepareTranspose(const Node& node, keel_launch* launch) {
  return Keep(launch, node.List("perm"), KEEL_BY_SIZE(RunTranspose));
}
keel_rc PrepareReverse(const Node& node, keel_launch* launch) {
  return Keep(launch, node.List("axes"), KEEL_BY_SIZE(RunReverse));
}
keel_rc PrepareSlice(const Node& node, keel_launch* launch) {
  return Keep(launch, Slice{node.List("start"), node.List("step")}, KEEL_BY_SIZE(RunSlice));
}
keel_rc PrepareDynamicSlice(const Node& node, keel_launch* launch) {
  launch->run = VisitSize(ItemSize(node.Out(0)), [&]<class T>() {
    return VisitIndex(node, 1, []<class I>() -> Run { return RunDynamicSlice<T, I>; });
  });
  return KEEL_OK;
}
keel_rc PrepareDynamicUpdateSlice(const Node& node, keel_launch* launch) {
  launch->run = VisitSize(ItemSize(node.Out(0)), [&]<class T>() {
    return VisitIndex(node, 2, []<class I>() -> Run { return RunDynamicUpdateSlice<T, I>; });
  });
  return KEEL_OK;
}
keel_rc PreparePad(const Node& node, keel_launch* launch) {
  return Keep(launch, Pad{node.List("lo"), node.List("gap")}, KEEL_BY_SIZE(RunPad));
}
keel_rc PrepareBroadcastTo(const Node& node, keel_launch* launch) {
  launch->run = KEEL_BY_SIZE(RunBroadcastTo);
  return KEEL_OK;
}

constexpr keel_impl kImpls[] = {
    Impl("transpose", "blocked copy", Prepare<PrepareTranspose>, KEEL_IMPL_ANY_DIMS),
    Impl("reverse", "strided copy", Prepare<PrepareReverse>, KEEL_IMPL_ANY_DIMS),
    Impl("broadcast_to", "strided copy", Prepare<PrepareBroadcastTo>, 0),
    Impl("slice", "strided copy", Prepare<PrepareSlice>, 0),
    Impl("dynamic_slice", "strided copy", Prepare<PrepareDynamicSlice>, 0),
    Impl("dynamic_update_slice", "strided copy", Prepare<PrepareDynamicUpdateSlice>,
         KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE),
    Impl("pad", "fill and strided copy", Prepare<PreparePad>, 0),
};

}  // namespace

keel_rc KeepLayoutCopy(Dims dims, Dims from, Dims to, keel_launch* launch) {
  Dims order(to.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return to[static_cast<size_t>(a)] > to[static_cast<size_t>(b)];
  });
  return Keep(launch, Layouts{std::move(dims), std::move(from), std::move(to), std::move(order)},
              Guard<RunLayoutCopy>);
}

Impls PermuteImpls() { return kImpls; }

}  // namespace keel_cpu
