// rows.cu: composites that read a row several times, in one launch: softmax, log_softmax, log_sum_exp of lines
// x[outer, :, inner]; layer_norm and rms_norm of rows; batch_norm. Rows are read once, into registers (keep_rows_), or
// several times, for they are in the cache after the first (the others). Half floats are computed in f32 and rounded once.
// Sums are added in an order that depends on the dims only.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "vectors.cuh"
#include "groups.cuh"

enum Softmaxes { kSoftmax, kLogSoftmax, kLogSumExp };  // ops/norm.cc
enum Norms { kLayer, kRms };                           // ops/norm.cc

// Operand x, result. Numbers: rows, threads of a row, kind, size, inner.
template <class S>
DEVICE void softmax(const KeelArgs& args) {
  typedef Compute<S> C;
  const i64 *n = args.numbers, kind = n[2], inner = n[4];
  each_row(n[0], n[1], [&](i64 row, Group group) {
    const i64 size = row < n[0] ? n[3] : 0, first = row / inner * size * inner + row % inner;
    const S* x = operand<const S>(args, 0) + first;
    S* y = operand<S>(args, 1);
    C highest = Ends<C>::least(), sum = (C)0;
    for (i64 k = group.rank(); k < size; k += group.size) highest = keel_maximum(highest, Number<S>::from(x[k * inner]));
    highest = group.combine(highest, [](C a, C b) { return keel_maximum(a, b); });
    for (i64 k = group.rank(); k < size; k += group.size) sum += exp(Number<S>::from(x[k * inner]) - highest);
    sum = group.sum(sum);
    if (kind == kLogSumExp && group.rank() == 0 && row < n[0]) y[row] = Number<S>::to(log(sum) + highest);
    const C log_sum = kind == kLogSoftmax ? log(sum) : (C)0;
    for (i64 k = group.rank(); k < size && kind != kLogSumExp; k += group.size) {
      const C d = Number<S>::from(x[k * inner]) - highest;
      y[first + k * inner] = Number<S>::to(kind == kLogSoftmax ? d - log_sum : exp(d) / sum);
    }
  });
}

// Operands x, g, b of kLayer, result. Numbers: rows, threads of a row, kind, size, the bits of epsilon.
template <class S>
DEVICE void norm(const KeelArgs& args) {
  typedef Compute<S> C;
  const i64 *n = args.numbers, kind = n[2];
  const C epsilon = (C)__longlong_as_double(n[4]);
  each_row(n[0], n[1], [&](i64 row, Group group) {
    const i64 size = row < n[0] ? n[3] : 0;
    const S *x = operand<const S>(args, 0) + row * size, *g = operand<const S>(args, 1), *b = operand<const S>(args, 2);
    S* y = operand<S>(args, 3) + row * size;
    C mean = (C)0, squares = (C)0;
    if (kind == kLayer) {
      for (i64 k = group.rank(); k < size; k += group.size) mean += Number<S>::from(x[k]);
      mean = group.sum(mean) / (C)size;
    }
    for (i64 k = group.rank(); k < size; k += group.size) {
      const C d = Number<S>::from(x[k]) - mean;
      squares += d * d;
    }
    const C scale = (C)1 / sqrt(group.sum(squares) / (C)size + epsilon);
    for (i64 k = group.rank(); k < size; k += group.size) {
      const C z = (Number<S>::from(x[k]) - mean) * scale * Number<S>::from(g[k]);
      y[k] = Number<S>::to(kind == kLayer ? z + Number<S>::from(b[k]) : z);
    }
  });
}

// ---- rows in registers, of f16, bf16 and f32

// exp of a number up to 0. Half floats: by an instruction whose error is far below theirs.
template <class S>
struct Exp {
  static DEVICE f32 of(f32 x) { return exp2_approximate(x * 1.44269504f); }
};
template <>
struct Exp<f32> {
  static DEVICE f32 of(f32 x) { return exp(x); }
};

template <class S, int W>
DEVICE f32 highest_of(Row<S, W>& row, Group group) {
  f32 highest = Ends<f32>::least();  // NaN is left to the sum
  row.each([&](const Vector<S, W>& x, int) {
    UNROLL for (int v = 0; v < W; v++) highest = fmax(highest, Number<S>::from(x.of[v]));
  });
  return group.combine(highest, [](f32 a, f32 b) { return fmax(a, b); });
}
// Stores f(element, its number) for each one.
template <class S, int W, class F>
DEVICE void store_row(Row<S, W>& row, S* y, F f) {
  row.each([&](const Vector<S, W>& x, int first) {
    Vector<S, W> result;
    UNROLL for (int v = 0; v < W; v++) result.of[v] = Number<S>::to(f(Number<S>::from(x.of[v]), first + v));
    store_vector(y + first, result);
  });
}

template <class S, int W>
DEVICE void softmax_row(const KeelArgs& args, u32 at, Group group) {
  const u32 kind = (u32)args.numbers[2], whole = (u32)args.numbers[3], size = at < (u32)args.numbers[0] ? whole : 0;
  const S* x = operand<const S>(args, 0);
  Row<S, W> row(x + (i64)at * whole, size, group);
  const f32 highest = highest_of(row, group);
  f32 sum = 0;
  row.each([&](const Vector<S, W>& e, int) {
    UNROLL for (int v = 0; v < W; v++) sum += Exp<S>::of(Number<S>::from(e.of[v]) - highest);
  });
  sum = group.sum(sum);
  S* y = operand<S>(args, 1);
  if (kind == kLogSumExp) {
    if (group.rank() == 0 && at < (u32)args.numbers[0]) y[at] = Number<S>::to(log(sum) + highest);
  } else if (kind == kLogSoftmax) {
    const f32 log_sum = log(sum);
    store_row(row, y + (i64)at * whole, [&](f32 e, int) { return e - highest - log_sum; });
  } else {
    const f32 scale = 1 / sum;
    store_row(row, y + (i64)at * whole, [&](f32 e, int) { return Exp<S>::of(e - highest) * scale; });
  }
}

// y = (x - mean) * scale * g, + b of kLayer.
template <class S, int W>
DEVICE void store_norm(const KeelArgs& args, Row<S, W>& row, S* y, f32 mean, f32 scale) {
  const bool layer = args.numbers[2] == kLayer;
  const S *g = operand<const S>(args, 1), *b = operand<const S>(args, 2);
  row.each([&](const Vector<S, W>& x, int first) {
    const Vector<S, W> gain = load_vector<W>(g + first);
    Vector<S, W> bias = {}, result;
    if (layer) bias = load_vector<W>(b + first);
    UNROLL for (int v = 0; v < W; v++) {
      const f32 z = (Number<S>::from(x.of[v]) - mean) * scale * Number<S>::from(gain.of[v]);
      result.of[v] = Number<S>::to(layer ? z + Number<S>::from(bias.of[v]) : z);
    }
    store_vector(y + first, result);
  });
}
template <class S, int W>
DEVICE void norm_row(const KeelArgs& args, u32 at, Group group) {
  const u32 kind = (u32)args.numbers[2], whole = (u32)args.numbers[3], size = at < (u32)args.numbers[0] ? whole : 0;
  const S* x = operand<const S>(args, 0);
  S* y = operand<S>(args, 3);
  Row<S, W> row(x + (i64)at * whole, size, group);
  f32 mean = 0, squares = 0;
  if (kind == kLayer) {
    row.each([&](const Vector<S, W>& e, int) {
      UNROLL for (int v = 0; v < W; v++) mean += Number<S>::from(e.of[v]);
    });
    mean = group.sum(mean) / (f32)whole;
  }
  row.each([&](const Vector<S, W>& e, int) {
    UNROLL for (int v = 0; v < W; v++) {
      const f32 d = Number<S>::from(e.of[v]) - mean;
      squares += d * d;
    }
  });
  const f32 scale = 1 / sqrt(group.sum(squares) / (f32)whole + (f32)__longlong_as_double(args.numbers[4]));
  store_norm(args, row, y + (i64)at * whole, mean, scale);
}

// Numbers and operands as above, but the fifth of softmax is not used. Wide: rows are multiples of vectors of 16 bytes.
#define KEEP_ROWS(kernel, row_of, S, W)                                                       \
  WIDE_KERNEL(kernel) {                                                                       \
    const u32 threads = (u32)args.numbers[1], rows = blockDim.x / threads;                    \
    row_of<S, W>(args, blockIdx.x * rows + threadIdx.x / threads, Group{(int)threads}); \
  }
#define KEEP_ROWS_OF(S, W)                          \
  KEEP_ROWS(keep_softmax_##S, softmax_row, S, W)    \
  KEEP_ROWS(keep_norm_##S, norm_row, S, W)          \
  KEEP_ROWS(keep_any_softmax_##S, softmax_row, S, 1) \
  KEEP_ROWS(keep_any_norm_##S, norm_row, S, 1)
KEEP_ROWS_OF(f16, 8)
KEEP_ROWS_OF(bf16, 8)
KEEP_ROWS_OF(f32, 4)

// Operands x, g, b, mean, variance, result. Numbers: count, channels, pixels, the bits of epsilon.
template <class S>
DEVICE void batch_norm(const KeelArgs& args) {
  typedef Compute<S> C;
  const i64* n = args.numbers;
  const C epsilon = (C)__longlong_as_double(n[3]);
  const auto of_channel = [&](int i, i64 channel) { return Number<S>::from(operand<const S>(args, i)[channel]); };
  for (i64 i = first_element(); i < n[0]; i += grid_size()) {
    const i64 channel = i / n[2] % n[1];
    const C k = of_channel(1, channel) / sqrt(of_channel(4, channel) + epsilon);
    const C h = of_channel(2, channel) - of_channel(3, channel) * k;
    operand<S>(args, 5)[i] = Number<S>::to(of_channel(0, i) * k + h);
  }
}

#define FLOATS(S)                                     \
  BLOCK_KERNEL(softmax_##S) { softmax<S>(args); }     \
  BLOCK_KERNEL(norm_##S) { norm<S>(args); }           \
  KERNEL(batch_norm_##S) { batch_norm<S>(args); }
FLOATS(f16)
FLOATS(bf16)
FLOATS(f32)
FLOATS(f64)
