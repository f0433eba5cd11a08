// conv.cu: convolutions and their gradients as products of matrices whose right side is read by windows. One kernel
// serves all three: the host describes rows, columns and the inner dim by numbers (ops/conv.cc).
//   conv_S         tiles of 64 x 64 results, or parts of their sums
//   conv_sum_S     adds the parts, in order
//   conv_direct_S  a thread or a block for each result: few rows or columns, as where each channel is a group
// Padding adds exactly 0 even for infinite weights: a sum that is NaN is computed again without the cells outside.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "tiles.cuh"
#include "conv.cuh"

constexpr int kEach = 4, kTile = kAcross * kEach;

// For tiles.cuh. Coordinates of the tile's columns and of kDepth elements of the inner dim are in shared memory, so that
// an element costs no division.
template <class S>
struct Windows {
  struct Shared {
    i64 channel_of_column[kTile], channel_of_k[kDepth], left_of_k[kDepth];
    int z_of_column[kRank][kTile], z_of_k[kRank][kDepth];
  };
  Shared& shared;
  const KeelArgs& args;
  i64 group, row0, column0, k0, end;

  static DEVICE bool left_along_inner() { return true; }
  static DEVICE bool right_along_inner() { return false; }
  DEVICE void enter() {
    const Plan& p = plan_of(args);
    const int i = (int)threadIdx.x;
    if (i >= kTile || column0 + i >= p.columns) return;
    const int outer = over(column0 + i, p.column_cells);
    int cell = (int)(column0 + i) - outer * (int)p.column_cells;
    shared.channel_of_column[i] = group * p.channel_of_group + outer * p.channel_of_column;
    for (int d = (int)p.rank - 1; d >= 0; d--) {
      const int rest = over(cell, p.column_dims[d]);
      shared.z_of_column[d][i] = (int)(p.start[d] + (cell - rest * p.column_dims[d]) * p.column_step[d]);
      cell = rest;
    }
  }
  DEVICE void prepare(i64 first) {
    const Plan& p = plan_of(args);
    const int i = (int)threadIdx.x;
    k0 = first;
    if (i >= kDepth || k0 + i >= end) return;
    const int outer = over(k0 + i, p.k_cells);
    int cell = (int)(k0 + i) - outer * (int)p.k_cells;
    shared.channel_of_k[i] = outer * p.channel_of_k;
    shared.left_of_k[i] = group * p.left_of_group + outer * p.left_of_k + cell;
    for (int d = (int)p.rank - 1; d >= 0; d--) {
      const int rest = over(cell, p.k_dims[d]);
      shared.z_of_k[d][i] = (int)((cell - rest * p.k_dims[d]) * p.k_step[d]);
      cell = rest;
    }
  }
  DEVICE Compute<S> left(int row, int k) const {
    const Plan& p = plan_of(args);
    if (row0 + row >= p.rows || k0 + k >= end) return (Compute<S>)0;
    return Number<S>::from(left_side<S>(args)[(row0 + row) * p.left_of_row + shared.left_of_k[k]]);
  }
  DEVICE Compute<S> right(int k, int column) const {
    const Plan& p = plan_of(args);
    if (column0 + column >= p.columns || k0 + k >= end) return (Compute<S>)0;
    i64 at = 0;
    for (int d = 0; d < (int)p.rank; d++)
      if (!step_into(p, d, shared.z_of_column[d][column] + shared.z_of_k[d][k], &at)) return (Compute<S>)0;
    return Number<S>::from(right_side<S>(args)[(shared.channel_of_column[column] + shared.channel_of_k[k]) * p.right_cells + at]);
  }
};

template <class S>
DEVICE void conv(const KeelArgs& args) {
  typedef Compute<S> C;
  __shared__ typename Windows<S>::Shared shared;
  const Plan& p = plan_of(args);
  const i64 across = (p.columns + kTile - 1) / kTile, down = (p.rows + kTile - 1) / kTile, of_group = across * down * p.parts;
  for (i64 tile = blockIdx.x; tile < of_group * p.groups; tile += gridDim.x) {
    const i64 part = tile / (across * down) % p.parts, first = part * p.depth;
    const i64 end = first + p.depth < p.inner ? first + p.depth : p.inner;
    Windows<S> windows = {shared, args, tile / of_group, tile / across % down * kTile, tile % across * kTile, 0, end};
    C sums[kEach][kEach] = {};
    windows.enter();
    multiply_tile(windows, first, end, sums);
    UNROLL for (int i = 0; i < kEach; i++)
      UNROLL for (int j = 0; j < kEach; j++) {
        const i64 row = windows.row0 + tile_row<kEach>(i), column = windows.column0 + tile_column<kEach>(j);
        if (row >= p.rows || column >= p.columns) continue;
        const Result result = {windows.group, row, column};
        C sum = sums[i][j];
        if (is_nan(sum)) sum = direct_sum<S>(args, result, first, end, 1);
        const i64 at = result.place(p);
        if (p.parts == 1)
          operand<S>(args, 2)[at] = Number<S>::to(sum);
        else
          operand<C>(args, 3)[part * (p.groups * p.rows * p.columns) + at] = sum;
      }
    __syncthreads();
  }
}

template <class S>
DEVICE void conv_sum(const KeelArgs& args) {
  typedef Compute<S> C;
  const Plan& p = plan_of(args);
  const i64 count = p.groups * p.rows * p.columns;
  for (i64 i = first_element(); i < count; i += grid_size()) {
    C sum = operand<const C>(args, 3)[i];
    for (i64 part = 1; part < p.parts; part++) sum += operand<const C>(args, 3)[part * count + i];
    operand<S>(args, 2)[i] = Number<S>::to(sum);
  }
}

template <class S>
DEVICE void conv_direct(const KeelArgs& args) {
  const Plan& p = plan_of(args);
  const bool alone = p.threads == 1;
  const i64 first = alone ? first_element() : (i64)blockIdx.x, step = alone ? grid_size() : gridDim.x;
  for (i64 i = first; i < p.groups * p.rows * p.columns; i += step) {
    const Result at(p, i);
    const Compute<S> sum = alone ? direct_sum<S>(args, at, 0, p.inner, 1) : block_sum<S>(args, at);
    if (alone || threadIdx.x == 0) operand<S>(args, 2)[at.place(p)] = Number<S>::to(sum);
  }
}

#define FLOATS(S)                                       \
  BLOCK_KERNEL(conv_##S) { conv<S>(args); }             \
  KERNEL(conv_sum_##S) { conv_sum<S>(args); }           \
  BLOCK_KERNEL(conv_direct_##S) { conv_direct<S>(args); }
FLOATS(f16)
FLOATS(bf16)
FLOATS(f32)
// Tiles of f64 need more registers than two blocks have.
#undef LEAST_BLOCKS
#define LEAST_BLOCKS 1
FLOATS(f64)
