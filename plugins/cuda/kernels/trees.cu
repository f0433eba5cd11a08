// trees.cu: tree_ensemble.
//   trees_begin  all indices are checked; y starts as 0, for max and min as the number that they replace
//   trees_walk   a block takes a row. Each thread walks a tree; then their leaves are combined with y in the order
//                of the trees, by the threads that own the columns.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "indices.cuh"
#include "numbers.cuh"
#include "combine.cuh"

enum Operand { kX, kSplit, kFeature, kTest, kNext, kRoot, kTarget, kWeight, kResult };

struct Numbers {  // ops/trees.cc
  i64 rows, features, nodes, trees, leaves, width, size, reduction, index_bytes;
};
DEVICE const Numbers& numbers_of(const KeelArgs& args) { return *(const Numbers*)args.numbers; }

DEVICE i64 index_at(const KeelArgs& args, int o, i64 i) { return index_at(args, o, numbers_of(args).index_bytes, i); }

template <class S>
DEVICE void begin(const KeelArgs& args) {
  const Numbers& n = numbers_of(args);
  const S start = n.reduction == kSum ? (S)0 : n.reduction == kMax ? Ends<S>::least() : Ends<S>::greatest();
  const i64 count = n.rows * n.size;
  for (i64 i = first_element(); i < count || i < n.nodes || i < n.trees; i += grid_size()) {
    if (i < count) operand<S>(args, kResult)[i] = start;
    if (i < n.nodes) {
      is_out(args, index_at(args, kFeature, i), n.features);
      is_out(args, index_at(args, kNext, 2 * i), n.nodes + n.leaves - i - 1);
      is_out(args, index_at(args, kNext, 2 * i + 1), n.nodes + n.leaves - i - 1);
    }
    if (i < n.trees) {
      is_out(args, index_at(args, kRoot, i), n.nodes + n.leaves);
      is_out(args, index_at(args, kTarget, i), n.size - n.width + 1);
    }
  }
}

// The leaf of a row in a tree; -1: an index is out of range.
template <class S>
DEVICE i64 leaf_of(const KeelArgs& args, i64 row, i64 tree) {
  const Numbers& n = numbers_of(args);
  const S* x = operand<const S>(args, kX) + row * n.features;
  i64 at = index_at(args, kRoot, tree);
  if ((u64)at >= (u64)(n.nodes + n.leaves)) return -1;
  while (at < n.nodes) {
    const i64 feature = index_at(args, kFeature, at);
    if ((u64)feature >= (u64)n.features) return -1;
    const S value = x[feature], split = operand<const S>(args, kSplit)[at];
    const i64 relation = value < split ? 1 : value == split ? 2 : value > split ? 4 : 8;
    const i64 next = index_at(args, kNext, 2 * at + ((index_at(args, kTest, at) & relation) != 0));
    if ((u64)next >= (u64)(n.nodes + n.leaves - at - 1)) return -1;
    at += 1 + next;
  }
  return at - n.nodes;
}

template <class S>
DEVICE S combined(i64 reduction, S a, S b) {
  if (reduction == kSum) return a + b;
  return reduction == kMax ? Combine<S>::max(a, b) : Combine<S>::min(a, b);
}

template <class S>
DEVICE void walk(const KeelArgs& args) {
  __shared__ i64 leaf[kThreads], target[kThreads];
  __shared__ S first_weight[kThreads];
  const Numbers& n = numbers_of(args);
  const int thread = (int)threadIdx.x;
  const S* weight = operand<const S>(args, kWeight);
  for (i64 row = blockIdx.x; row < n.rows; row += gridDim.x) {
    S* y = operand<S>(args, kResult) + row * n.size;
    for (i64 first = 0; first < n.trees; first += kThreads) {
      __syncthreads();
      if (first + thread < n.trees) {
        target[thread] = index_at(args, kTarget, first + thread);
        const bool valid = (u64)target[thread] <= (u64)(n.size - n.width);
        leaf[thread] = valid ? leaf_of<S>(args, row, first + thread) : -1;
        if (leaf[thread] >= 0 && n.width > 0) first_weight[thread] = weight[leaf[thread] * n.width];
      }
      __syncthreads();
      for (int j = 0; j < kThreads && first + j < n.trees; j++) {
        if (leaf[j] < 0) continue;
        for (i64 k = (thread - target[j] % kThreads + kThreads) % kThreads; k < n.width; k += kThreads) {
          S* to = y + target[j] + k;
          *to = combined(n.reduction, *to, k ? weight[leaf[j] * n.width + k] : first_weight[j]);
        }
      }
    }
  }
}

#define FLOATS(S)                               \
  KERNEL(trees_begin_##S) { begin<S>(args); }   \
  BLOCK_KERNEL(trees_walk_##S) { walk<S>(args); }
FLOATS(f32)
FLOATS(f64)
