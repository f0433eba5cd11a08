// reduce.cu: reductions along any axes: a block or a thread for each result; folds.cu has those along adjacent axes. The
// order of operations depends on the dims only.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "combine.cuh"

template <class S>
struct Simple {
  typedef Compute<S> State;
  i64 kind;
  DEVICE State none() const {
    if (kind == kMax) return Ends<State>::least();
    return kind == kMin ? Ends<State>::greatest() : (State)(kind == kProduct);
  }
  DEVICE State of(State a, State b) const {
    typedef Combine<State> With;
    if (kind == kProduct) return With::product(a, b);
    if (kind == kMax) return With::max(a, b);
    return kind == kMin ? With::min(a, b) : With::sum(a, b);
  }
  DEVICE State to(State s, i64 n) const { return kind == kMean ? Combine<State>::mean(s, n) : s; }
};
template <class S>
struct WholeMean {  // of integers: exact, truncated
  typedef __int128 State;
  i64 kind;
  DEVICE State none() const { return 0; }
  DEVICE State of(State a, State b) const { return a + b; }
  DEVICE S to(State s, i64 n) const { return n ? (S)(s / n) : (S)0; }
};

// Operand x, result. Numbers: results, elements of a result, reduction, threads for a result (1 or a block),
// rank of the kept and of the reduced dims; sizes and strides of the kept, then of the reduced dims.
// ops/reduce.cc
struct Plan {
  i64 kept_rank, rank;
  const i64 *kept, *reduced;
};
DEVICE Plan plan_of(const KeelArgs& args) {
  const i64* n = args.numbers;
  return {n[4], n[5], n + 6, n + 6 + 2 * n[4]};
}
// Elements begin, begin + step ... of result i. Parts of 16 are combined first: long sums round less.
template <class S, class Op>
DEVICE typename Op::State partial(const KeelArgs& args, Op op, i64 i, i64 begin, i64 step) {
  const Plan plan = plan_of(args);
  i64 base, at;
  find_offsets<1>(plan.kept, (int)plan.kept_rank, i, &base);
  const S* x = operand<const S>(args, 0) + base;
  typename Op::State all = op.none();
  for (i64 k = begin; k < args.numbers[1];) {
    typename Op::State part = op.none();
    for (int n = 0; n < 16 && k < args.numbers[1]; n++, k += step) {
      find_offsets<1>(plan.reduced, (int)plan.rank, k, &at);
      part = op.of(part, (typename Op::State)Number<S>::from(x[at]));
    }
    all = op.of(all, part);
  }
  return all;
}
template <class S, class Op>
DEVICE void reduce(const KeelArgs& args) {
  __shared__ typename Op::State parts[kThreads];
  const Op op = {args.numbers[2]};
  const i64 group = args.numbers[3];
  const unsigned thread = threadIdx.x;
  const i64 first = group == 1 ? first_element() : (i64)blockIdx.x, step = group == 1 ? grid_size() : gridDim.x;
  for (i64 i = first; i < args.numbers[0]; i += step) {
    typename Op::State all = partial<S>(args, op, i, group == 1 ? 0 : thread, group);
    for (unsigned half = (unsigned)group / 2; half > 0; half /= 2) {
      parts[thread] = all;
      __syncthreads();
      if (thread < half) all = op.of(all, parts[thread + half]);
      __syncthreads();
    }
    if (group == 1 || thread == 0) operand<S>(args, 1)[i] = Number<S>::to(op.to(all, args.numbers[1]));
  }
}

#define DTYPE(S, name) \
  BLOCK_KERNEL(reduce_##name) { reduce<S, Simple<S>>(args); }
#include "dtypes.inc"
#define MEAN(S) \
  BLOCK_KERNEL(mean_##S) { reduce<S, WholeMean<S>>(args); }
MEAN(i8)
MEAN(i16)
MEAN(i32)
MEAN(i64)
MEAN(u8)
MEAN(u16)
MEAN(u32)
MEAN(u64)
