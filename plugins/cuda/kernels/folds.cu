// folds.cu: reductions of x[outer, size, inner] along the middle dim: of rows (inner is 1) and of columns, with vectors of 16
// bytes. Few long lines are folded in parts, whose states fold_states_ folds. The order of operations depends on the dims
// only.
#define LEAST_BLOCKS 4
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "vectors.cuh"
#include "groups.cuh"
#include "combine.cuh"

template <class S, int KIND>
struct Fold {
  typedef Compute<S> State;
  static DEVICE State none() {
    if (KIND == kMax) return Ends<State>::least();
    return KIND == kMin ? Ends<State>::greatest() : (State)(KIND == kProduct);
  }
  static DEVICE State of(State a, State b) {
    typedef Combine<State> With;
    if (KIND == kProduct) return With::product(a, b);
    if (KIND == kMax) return With::max(a, b);
    return KIND == kMin ? With::min(a, b) : With::sum(a, b);
  }
  static DEVICE S to(State s, i64 n) { return Number<S>::to(KIND == kMean ? Combine<State>::mean(s, n) : s); }
};
// Of integers: exact, truncated.
template <int BYTES>
struct Exact {
  typedef __int128 State;
};
template <>
struct Exact<1> {
  typedef i64 State;
};
template <>
struct Exact<2> {
  typedef i64 State;
};
template <class S>
struct FoldMean {
  typedef typename Exact<sizeof(S)>::State State;
  static DEVICE State none() { return 0; }
  static DEVICE State of(State a, State b) { return a + b; }
  static DEVICE S to(State s, i64 n) { return n ? (S)(s / n) : (S)0; }
};

// Numbers: outer, size, inner, not used; parts of a line, their elements; threads of a part of a row, or across columns; 1 for
// vectors; elements of a whole line. ops/reduce.cc
struct Lines {
  i64 outer, size, inner, parts, length;
  int threads;
  bool wide;
  i64 whole;
};
DEVICE Lines lines_of(const KeelArgs& args) {
  const i64* n = args.numbers;
  return {n[0], n[1], n[2], n[4], n[5], (int)n[6], n[7] != 0, n[8]};
}
// Of a part of a line: a state in scratch, or the result.
template <class S, class OP>
DEVICE void store_fold(const KeelArgs& args, const Lines& lines, i64 at, typename OP::State s) {
  if (lines.parts > 1)
    operand<typename OP::State>(args, 1)[at] = s;
  else
    operand<S>(args, 1)[at] = OP::to(s, lines.whole);
}
template <class S, class STATE>
struct Read {
  static DEVICE STATE of(S x) { return (STATE)Number<S>::from(x); }
};
template <class STATE>
struct Read<STATE, STATE> {
  static DEVICE STATE of(STATE x) { return x; }
};

// Of 16 bytes, or of 8 elements: a state for each has to stay in registers.
template <class S, class OP>
constexpr int kWide = sizeof(S) > 1 ? 16 / (int)sizeof(S) : sizeof(typename OP::State) > 4 ? 4 : 8;

// A vector on its way.
template <class X, int W>
struct Ahead : Pack<X, W, 1> {};
template <class X>
struct Ahead<X, 1> {
  X x = {};
  DEVICE void load(int, const X* from) { x = *from; }
  DEVICE X get(int) const { return x; }
};
// Folds vectors number `first`, first + step ... before `end`, some of which are on their way: element v into all[v].
template <int W, class OP, class X, class At>
DEVICE void fold_vectors(typename OP::State (&all)[W], int first, int end, int step, At at) {
  constexpr int kAhead = 4;
  NO_UNROLL for (; first < end; first += kAhead * step) {
    Ahead<X, W> x[kAhead];
    UNROLL for (int a = 0; a < kAhead; a++)
      if (first + a * step < end) x[a].load(0, at(first + a * step));
    UNROLL for (int a = 0; a < kAhead; a++)
      if (first + a * step < end)
        UNROLL for (int v = 0; v < W; v++) all[v] = OP::of(all[v], Read<X, typename OP::State>::of(x[a].get(v)));
  }
}
// Elements of part i, which is the whole line or a part of it.
DEVICE int length_of(const Lines& n, i64 part) {
  const i64 left = n.size - part * n.length;
  return (int)(left < n.length ? left : n.length);
}

// A group of threads for each part of a row.
template <class S, class OP, int W>
DEVICE void fold_rows(const KeelArgs& args) {
  typedef typename OP::State State;
  const Lines n = lines_of(args);
  const i64 items = n.outer * n.parts;
  const S* x = operand<const S>(args, 0);
  each_row(items, n.threads, [&](i64 item, Group group) {
    const i64 line = n.parts == 1 ? item : item / n.parts, part = item - line * n.parts;
    const S* row = x + line * n.size + part * n.length;
    State all[W];
    UNROLL for (int v = 0; v < W; v++) all[v] = OP::none();
    fold_vectors<W, OP, S>(all, group.rank(), item < items ? length_of(n, part) / W : 0, group.size,
                           [&](int k) { return row + k * W; });
    UNROLL for (int half = W / 2; half > 0; half /= 2)
      UNROLL for (int v = 0; v < half; v++) all[v] = OP::of(all[v], all[v + half]);
    const State s = group.combine(all[0], [](State a, State b) { return OP::of(a, b); });
    if (group.rank() == 0 && item < items) store_fold<S, OP>(args, n, item, s);
  });
}

// A block for each part of some columns: threads side by side, and below each other for some of the rows.
template <class X, class S, class OP, int W>
DEVICE void fold_columns(const KeelArgs& args) {
  typedef typename OP::State State;
  __shared__ State shared[kThreads];
  const Lines n = lines_of(args);
  const int thread = (int)threadIdx.x, below = kThreads / n.threads;
  const u32 tiles = (u32)((n.inner + n.threads * W - 1) / (n.threads * W));
  const X* x = operand<const X>(args, 0);
  for (i64 item = blockIdx.x; item < n.outer * n.parts * tiles; item += gridDim.x) {
    const i64 part = item / tiles, line = n.parts == 1 ? part : part / n.parts;
    const i64 column = ((item - part * tiles) * n.threads + thread % n.threads) * W;
    const X* top = x + (line * n.size + (part - line * n.parts) * n.length) * n.inner + column;
    State all[W];
    UNROLL for (int v = 0; v < W; v++) all[v] = OP::none();
    fold_vectors<W, OP, X>(all, thread / n.threads, column < n.inner ? length_of(n, part - line * n.parts) : 0, below,
                           [&](int k) { return top + k * n.inner; });
    UNROLL for (int v = 0; v < W; v++) {
      for (int half = below / 2; half > 0; half /= 2) {
        shared[thread] = all[v];
        __syncthreads();
        if (thread < half * n.threads) all[v] = OP::of(all[v], shared[thread + half * n.threads]);
        __syncthreads();
      }
      if (thread < n.threads && column < n.inner) store_fold<S, OP>(args, n, part * n.inner + column + v, all[v]);
    }
  }
}

template <class S, class OP>
DEVICE void fold_rows(const KeelArgs& args) {
  args.numbers[7] ? fold_rows<S, OP, kWide<S, OP>>(args) : fold_rows<S, OP, 1>(args);
}
template <class S, class OP>
DEVICE void fold_columns(const KeelArgs& args) {
  args.numbers[7] ? fold_columns<S, S, OP, kWide<S, OP>>(args) : fold_columns<S, S, OP, 1>(args);
}

#define FOLDS(kind, name, S, ...)                                                 \
  BLOCK_KERNEL(rows_##kind##_##name) { fold_rows<S, __VA_ARGS__>(args); }         \
  BLOCK_KERNEL(columns_##kind##_##name) { fold_columns<S, __VA_ARGS__>(args); }   \
  BLOCK_KERNEL(states_##kind##_##name) { fold_columns<typename __VA_ARGS__::State, S, __VA_ARGS__, 1>(args); }
#define DTYPE(S, name)                         \
  FOLDS(max, name, S, Fold<S, kMax>)           \
  FOLDS(min, name, S, Fold<S, kMin>)
#include "dtypes.inc"
#define DTYPE(S, name)                         \
  FOLDS(sum, name, S, Fold<S, kSum>)           \
  FOLDS(prod, name, S, Fold<S, kProduct>)
#define ONLY_NUMBERS
#include "dtypes.inc"
#define FLOAT(S) FOLDS(mean, S, S, Fold<S, kMean>)
FLOAT(f16)
FLOAT(bf16)
FLOAT(f32)
FLOAT(f64)
#define INTEGER(S) FOLDS(mean, S, S, FoldMean<S>)
INTEGER(i8)
INTEGER(i16)
INTEGER(i32)
INTEGER(i64)
INTEGER(u8)
INTEGER(u16)
INTEGER(u32)
INTEGER(u64)
