// rows.cu: composites that read a row several times, in one launch: softmax, log_softmax, log_sum_exp of lines
// x[outer, :, inner]; layer_norm and rms_norm of rows; batch_norm. After the first pass a row is in the cache. Half floats
// are computed in f32 and rounded once. Sums are added in an order that depends on the dims only.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"

enum Softmaxes { kSoftmax, kLogSoftmax, kLogSumExp };  // ops/norm.cc
enum Norms { kLayer, kRms };                           // ops/norm.cc

// The threads of a row: `group` of a block, a power of two. All threads of a block take part in each combine().
template <class C>
struct Group {
  C* parts;  // of all threads of the block
  int size;
  DEVICE int rank() const { return (int)threadIdx.x % size; }
  template <class F>
  DEVICE C combine(C mine, F f) const {
    if (size == 1) return mine;
    const int thread = (int)threadIdx.x;
    parts[thread] = mine;
    for (int half = size / 2; half > 0; half /= 2) {
      __syncthreads();
      if (rank() < half) parts[thread] = f(parts[thread], parts[thread + half]);
    }
    __syncthreads();
    const C all = parts[thread - rank()];
    __syncthreads();
    return all;
  }
  DEVICE C sum(C mine) const {
    return combine(mine, [](C a, C b) { return a + b; });
  }
  DEVICE C highest(C mine) const {
    return combine(mine, [](C a, C b) { return keel_maximum(a, b); });
  }
};
// Calls f for each row with its group. Threads without a row get `rows`, so that all meet.
template <class C, class F>
DEVICE void each_row(i64 rows, i64 group, F f) {
  __shared__ C parts[kThreads];
  const i64 of_block = kThreads / group;
  for (i64 base = blockIdx.x * of_block; base < rows; base += gridDim.x * of_block) {
    const i64 row = base + threadIdx.x / group;
    f(row < rows ? row : rows, Group<C>{parts, (int)group});
  }
}

// Operand x, result. Numbers: rows, threads of a row, kind, size, inner.
template <class S>
DEVICE void softmax(const KeelArgs& args) {
  typedef Compute<S> C;
  const i64 *n = args.numbers, kind = n[2], inner = n[4];
  each_row<C>(n[0], n[1], [&](i64 row, Group<C> group) {
    const i64 size = row < n[0] ? n[3] : 0, first = row / inner * size * inner + row % inner;
    const S* x = operand<const S>(args, 0) + first;
    S* y = operand<S>(args, 1);
    C highest = Ends<C>::least(), sum = (C)0;
    for (i64 k = group.rank(); k < size; k += group.size) highest = keel_maximum(highest, Number<S>::from(x[k * inner]));
    highest = group.highest(highest);
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
  each_row<C>(n[0], n[1], [&](i64 row, Group<C> group) {
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
