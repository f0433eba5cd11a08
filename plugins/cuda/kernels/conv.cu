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

constexpr int kRank = 6;  // image dims, at most
constexpr int kEach = 4, kTile = kAcross * kEach;

// A column is (outer, cell) and an element k of the inner dim is (outer, cell), cells in row-major order of their
// dims. With c and k the coordinates of the two cells in a dim,
//   z = start + c * column_step + k * k_step; place = z / divide, if that has no remainder and is in [0, bound).
// The right side is read at channel * right_cells + the place's offset, channel being a linear function of group and
// the outer numbers; so are the places of the left side and of the result.
struct Plan {
  i64 groups, rows, columns, inner, depth, parts, threads, rank;  // threads: for a result of conv_direct
  i64 column_cells, k_cells, right_cells;
  i64 channel_of_group, channel_of_column, channel_of_k;
  i64 left_of_group, left_of_row, left_of_k;                // an outer k; the cells of k are adjacent
  i64 result_of_group, result_of_row, result_of_column;  // an outer column; its cells are adjacent
  i64 column_dims[kRank], column_step[kRank], start[kRank];
  i64 k_dims[kRank], k_step[kRank], bound[kRank], divide[kRank];
};
DEVICE const Plan& plan_of(const KeelArgs& args) { return *(const Plan*)args.numbers; }
// Operands left, right, result, parts of sums.
template <class S>
DEVICE const S* left_side(const KeelArgs& args) {
  return operand<const S>(args, 0);
}
template <class S>
DEVICE const S* right_side(const KeelArgs& args) {
  return operand<const S>(args, 1);
}
// Numbers below 2^31, which divide faster in 32 bits; ops/conv.cc checks them.
DEVICE int over(i64 n, i64 d) { return (int)((u32)n / (u32)d); }

DEVICE i64 result_of(const Plan& p, i64 group, i64 row, i64 column) {
  const i64 outer = over(column, p.column_cells);
  return group * p.result_of_group + row * p.result_of_row + outer * p.result_of_column + column - outer * p.column_cells;
}

// One coordinate: see Plan. false: outside of the right side.
DEVICE bool step_into(const Plan& p, int d, int z, i64* at) {
  if (z < 0) return false;
  int place = z;
  if (p.divide[d] != 1) {
    place = over(z, p.divide[d]);
    if (place * (int)p.divide[d] != z) return false;
  }
  *at = *at * p.bound[d] + place;
  return place < p.bound[d];
}

// The sum for one result over k from first to end in steps; divisions for each k.
template <class S>
DEVICE Compute<S> direct_sum(const KeelArgs& args, i64 group, i64 row, i64 column, i64 first, i64 end, i64 step) {
  const Plan& p = plan_of(args);
  Compute<S> sum = (Compute<S>)0;
  const int outer_column = over(column, p.column_cells);
  for (i64 k = first; k < end; k += step) {
    const int outer = over(k, p.k_cells);
    int c = (int)column - outer_column * (int)p.column_cells, tap = (int)k - outer * (int)p.k_cells;
    const int cell = tap;
    i64 at = 0, pitch = 1;
    bool inside = true;
    for (int d = (int)p.rank - 1; d >= 0 && inside; d--) {
      const int rest_c = over(c, p.column_dims[d]), rest_k = over(tap, p.k_dims[d]);
      i64 here = 0;
      inside = step_into(p, d, (int)(p.start[d] + (c - rest_c * p.column_dims[d]) * p.column_step[d] + (tap - rest_k * p.k_dims[d]) * p.k_step[d]), &here);
      at += here * pitch;
      pitch *= p.bound[d];
      c = rest_c, tap = rest_k;
    }
    if (!inside) continue;
    const i64 channel = group * p.channel_of_group + outer_column * p.channel_of_column + outer * p.channel_of_k;
    const Compute<S> a = Number<S>::from(left_side<S>(args)[group * p.left_of_group + row * p.left_of_row + outer * p.left_of_k + cell]);
    sum = multiply_add(a, Number<S>::from(right_side<S>(args)[channel * p.right_cells + at]), sum);
  }
  return sum;
}

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
        C sum = sums[i][j];
        if (is_nan(sum)) sum = direct_sum<S>(args, windows.group, row, column, first, end, 1);
        const i64 at = result_of(p, windows.group, row, column);
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
  typedef Compute<S> C;
  __shared__ C parts[kThreads];
  const Plan& p = plan_of(args);
  const bool alone = p.threads == 1;
  const unsigned thread = threadIdx.x;
  const i64 first = alone ? first_element() : (i64)blockIdx.x, step = alone ? grid_size() : gridDim.x;
  for (i64 i = first; i < p.groups * p.rows * p.columns; i += step) {
    const i64 line = i / p.columns, column = i % p.columns;
    C sum = direct_sum<S>(args, line / p.rows, line % p.rows, column, alone ? 0 : thread, p.inner, p.threads);
    for (unsigned half = (unsigned)p.threads / 2; half > 0; half /= 2) {
      parts[thread] = sum;
      __syncthreads();
      if (thread < half) sum += parts[thread + half];
      __syncthreads();
    }
    if (alone || thread == 0) operand<S>(args, 2)[result_of(p, line / p.rows, line % p.rows, column)] = Number<S>::to(sum);
  }
}

#define FLOATS(S)                                       \
  BLOCK_KERNEL(conv_##S) { conv<S>(args); }             \
  KERNEL(conv_sum_##S) { conv_sum<S>(args); }           \
  BLOCK_KERNEL(conv_direct_##S) { conv_direct<S>(args); }
FLOATS(f16)
FLOATS(bf16)
FLOATS(f32)
FLOATS(f64)
