// shape.cc: ops that create elements (fill, iota, dim, one_hot) or copy blocks of them (identity, concat,
// split, tile, triangle). Ops that reorder elements are in permute.cc.
#include <cstring>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/shape/copy_loops.h"

namespace keel_cpu {
namespace {

constexpr uint32_t kAny = KEEL_IMPL_ANY_DIMS;

keel_rc RunCopy(const keel_call* call) {
  const auto bytes = static_cast<int64_t>(keel_bytes(TypeOf(*call->out[0]), call->count));
  if (bytes > 0 && keel_ptr(call->in[0]) != keel_ptr(call->out[0]))
    CopyBytes(call, keel_ptr(call->out[0]), keel_ptr(call->in[0]), bytes);
  return Done(call);
}
keel_rc PrepareCopy(const Node&, keel_launch* launch) {
  launch->run = RunCopy;
  return KEEL_OK;
}

template <class T>
keel_rc RunFill(const keel_call* call) {
  Fill(call, Out<T>(call, 0), call->count, *In<T>(call, 0));
  return Done(call);
}
keel_rc PrepareFill(const Node& node, keel_launch* launch) {
  launch->run = VisitSize(ItemSize(node.Out(0)), []<class T>() -> Run { return RunFill<T>; });
  return KEEL_OK;
}

enum class Bool : uint8_t {};  // VisitAll has no bool: its type is uint8_t, to which 256 is 0

template <class T>
T FromInt(int64_t v) {
  if constexpr (std::is_same_v<T, Bool>)
    return Bool{v != 0};
  else if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>)
    return Rounded<T>(ToOdd(static_cast<double>(v)));
  else
    return static_cast<T>(v);
}

template <class T>
keel_rc RunIota(const keel_call* call) {
  const int64_t axis = State<int64_t>(call);
  const keel_tensor& t = *call->out[0];
  const int64_t n = t.shape[axis], inner = Product(t.shape + axis + 1, t.ndim - axis - 1);
  T* y = Out<T>(call, 0);
  const auto row = [&](int64_t e, int64_t end) {  // for inner 1: up to the end of the sequence
    const int64_t first = e % n, m = std::min(end - e, n - first);
    for (int64_t i = 0; i < m; i++) y[e + i] = FromInt<T>(first + i);
    return e + m;
  };
  const auto equal = [&](int64_t e, int64_t end) {
    const int64_t m = std::min(end - e, inner - e % inner);
    std::fill(y + e, y + e + m, FromInt<T>(e / inner % n));
    return e + m;
  };
  ParallelFor(call, call->count, 1, [&](int64_t begin, int64_t end) {
    while (begin < end) begin = inner == 1 ? row(begin, end) : equal(begin, end);
  });
  return Done(call);
}
keel_rc PrepareIota(const Node& node, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  const keel_dt dt = keel_dt_of(&y);
  return Keep(launch, node.Int("axis"),
              dt == KEEL_BOOL ? RunIota<Bool> : VisitAll(dt, []<class T>() -> Run { return RunIota<T>; }));
}

template <class T>
keel_rc RunDim(const keel_call* call) {
  *Out<T>(call, 0) = FromInt<T>(State<int64_t>(call));
  return KEEL_OK;
}
keel_rc PrepareDim(const Node& node, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  const keel_dt dt = keel_dt_of(&y);
  return Keep(launch, node.Int("of"),
              dt == KEEL_BOOL ? RunDim<Bool> : VisitAll(dt, []<class T>() -> Run { return RunDim<T>; }));
}

template <class T, class I>
keel_rc RunOneHot(const keel_call* call) {
  const int64_t axis = State<int64_t>(call);
  const keel_tensor& t = *call->out[0];
  const int64_t outer = Product(t.shape, axis), n = t.shape[axis],
                inner = Product(t.shape + axis + 1, t.ndim - axis - 1);
  const I* index = In<I>(call, 0);
  T* y = Out<T>(call, 0);
  Fill(call, y, call->count, FromInt<T>(0));
  InChunks(call, 0, outer * inner, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      if (const int64_t k = index[i]; k >= 0 && k < n)
        y[(i / inner * n + k) * inner + i % inner] = FromInt<T>(1);
  });
  return Done(call);
}
keel_rc PrepareOneHot(const Node& node, keel_launch* launch) {
  const keel_tensor i = node.In(0), y = node.Out(0);
  int64_t axis = node.Int("axis");
  if (axis < 0) axis += y.ndim;
  const bool wide = keel_dt_of(&i) == KEEL_I64;
  return Keep(launch, axis, VisitAll(keel_dt_of(&y), [&]<class T>() -> Run {
                return wide ? RunOneHot<T, int64_t> : RunOneHot<T, int32_t>;
              }));
}

// Rows of the dims before the axis; each operand (result) has a block of bytes in each row.
struct Block {
  char* data;
  int64_t bytes;
};
constexpr int64_t kTogether = 1 << 13;  // bytes
template <bool kSplit>
keel_rc RunBlocks(const keel_call* call) {
  const int64_t axis = State<int64_t>(call);
  const keel_tensor& whole = kSplit ? *call->in[0] : *call->out[0];
  const int64_t outer = Product(whole.shape, axis), parts = kSplit ? call->n_out : call->n_in;
  const int64_t inner = Product(whole.shape + axis + 1, whole.ndim - axis - 1) * ItemSize(whole);
  const int64_t row = whole.shape[axis] * inner;
  // Calls f(block, place of its first row in the whole) for each part.
  const auto each = [&](auto&& f) {
    char* at = static_cast<char*>(keel_ptr(&whole));
    for (int64_t p = 0; p < parts; p++) {
      const keel_tensor& part = kSplit ? *call->out[p] : *call->in[p];
      const Block b = {static_cast<char*>(keel_ptr(&part)), part.shape[axis] * inner};
      if (b.bytes > 0) f(b, at);
      at += b.bytes;
    }
  };
  // Rows [o, o + rows) of a block, or bytes [begin, end) of them.
  const auto copy = [=, loop = FindCopyRows()](const Block& b, char* at, int64_t o, int64_t rows,
                                               int64_t begin, int64_t end) {
    char *mine = b.data + o * b.bytes + begin, *its = at + o * row + begin;
    if (rows == 1)
      std::memcpy(kSplit ? mine : its, kSplit ? its : mine, static_cast<size_t>(end - begin));
    else if (kSplit)
      loop({its, row}, {mine, b.bytes}, end - begin, rows, 0);
    else
      loop({mine, b.bytes}, {its, row}, end - begin, rows, 0);
  };
  if (outer == 1 || row > kPiece) {
    each([&](const Block& b, char* at) {
      ParallelPieces(call, outer, b.bytes, 1,
                     [&](int64_t o, int64_t begin, int64_t end) { copy(b, at, o, 1, begin, end); });
    });
    return Done(call);
  }
  // Some rows of all parts at a time, so that memory is traversed in order.
  const int64_t some = std::max<int64_t>(kTogether / std::max<int64_t>(row, 1), 1);
  ParallelFor(call, outer, row / 4 + 2, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o += some)
      each([&](const Block& b, char* at) { copy(b, at, o, std::min(some, end - o), 0, b.bytes); });
  });
  return Done(call);
}
template <bool kSplit>
keel_rc PrepareBlocks(const Node& node, keel_launch* launch) {
  return Keep(launch, node.Int("axis"), RunBlocks<kSplit>);
}

// Repeats the first `have` bytes to fill `want`.
void Repeat(const keel_call* call, char* to, int64_t have, int64_t want) {
  if (have > kPiece || want <= kPiece) {
    for (int64_t done = have; done < want && !Cancelled(call); done += have)
      CopyBytes(call, to + done, to, have);
    return;
  }
  InChunks(call, 1, have == 0 ? 1 : want / have, have, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) std::memcpy(to + i * have, to, static_cast<size_t>(have));
  });
}

// Repeats from the last dim to the first; each step copies blocks that the result already contains.
keel_rc RunTile(const keel_call* call) {
  const keel_tensor& x = *call->in[0];
  const keel_tensor& y = *call->out[0];
  const int64_t item = ItemSize(x), rank = x.ndim;
  if (call->count == 0) return KEEL_OK;
  const char* from = static_cast<const char*>(keel_ptr(&x));
  char* to = static_cast<char*>(keel_ptr(&y));
  const int64_t count = keel_count(&x);
  // The rows of x are copied to their first positions, then each dim's block is repeated.
  const int64_t run = rank == 0 ? item : x.shape[rank - 1] * item;
  for (int64_t r = 0, rows = run == 0 ? 0 : count * item / run; r < rows && !Cancelled(call); r++) {
    int64_t at = 0, stride = rank == 0 ? 1 : y.shape[rank - 1];
    for (int64_t d = rank - 2, rest = r; d >= 0; d--) {
      at += rest % x.shape[d] * stride;
      rest /= x.shape[d];
      stride *= y.shape[d];
    }
    CopyBytes(call, to + at * item, from + r * run, run);
  }
  int64_t block = item;  // bytes per index of dim d in the result
  for (int64_t d = rank - 1; d >= 0; d--) {
    const int64_t have = block * x.shape[d], want = block * y.shape[d];
    // Only positions whose outer indices are within x are filled yet.
    const int64_t outer = Product(x.shape, d);
    for (int64_t o = 0; o < outer && !Cancelled(call); o++) {
      int64_t at = 0, stride = want;
      for (int64_t e = d - 1, rest = o; e >= 0; e--) {
        at += rest % x.shape[e] * stride;
        rest /= x.shape[e];
        stride *= y.shape[e];
      }
      Repeat(call, to + at, have, want);
    }
    block = want;
  }
  return Done(call);
}
keel_rc PrepareTile(const Node&, keel_launch* launch) {
  launch->run = RunTile;
  return KEEL_OK;
}

struct Triangle {
  bool upper;
  int64_t k;
};
keel_rc RunTriangle(const keel_call* call) {
  const Triangle& s = State<Triangle>(call);
  const keel_tensor& t = *call->out[0];
  const int64_t n = t.shape[t.ndim - 1], m = t.shape[t.ndim - 2], item = ItemSize(t);
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  if (call->count == 0) return KEEL_OK;
  ParallelPieces(call, call->count / n, n, 4, [&](int64_t r, int64_t begin, int64_t end) {
    // Columns up to the diagonal: [0, edge) stay in the lower triangle, [edge, n) in the upper one.
    const int64_t i = r % m, k = std::clamp(s.k, -m - n, m + n);
    const int64_t edge = std::clamp<int64_t>(s.upper ? i + k : i + k + 1, begin, end);
    const int64_t from = s.upper ? edge : begin, to = s.upper ? end : edge, row = r * n;
    const auto zero = [&](int64_t a, int64_t b) {
      std::memset(y + (row + a) * item, 0, static_cast<size_t>((b - a) * item));
    };
    zero(begin, from);
    std::memcpy(y + (row + from) * item, x + (row + from) * item, static_cast<size_t>((to - from) * item));
    zero(to, end);
  });
  return Done(call);
}
keel_rc PrepareTriangle(const Node& node, keel_launch* launch) {
  return Keep(launch, Triangle{node.Flag("upper"), node.Int("k")}, RunTriangle);
}

constexpr keel_impl kImpls[] = {
    Impl("identity", "copy", Prepare<PrepareCopy>, kAny | KEEL_IMPL_INPLACE),
    Impl("stop_gradient", "copy", Prepare<PrepareCopy>, kAny | KEEL_IMPL_INPLACE),
    Impl("reshape", "copy", Prepare<PrepareCopy>, 0),
    Impl("fill", "loop fill", Prepare<PrepareFill>, 0),
    Impl("iota", "loop iota", Prepare<PrepareIota>, kAny),
    Impl("dim", "number", Prepare<PrepareDim>, 0),
    Impl("one_hot", "loop one_hot", Prepare<PrepareOneHot>, kAny),
    Impl("concat", "copy blocks", Prepare<PrepareBlocks<false>>, kAny),
    Impl("split", "copy blocks", Prepare<PrepareBlocks<true>>, kAny),
    Impl("tile", "copy and repeat", Prepare<PrepareTile>, 0),
    Impl("triangle", "loop triangle", Prepare<PrepareTriangle>, kAny),
};

}  // namespace

Impls ShapeImpls() { return kImpls; }

}  // namespace keel_cpu
