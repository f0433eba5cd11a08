// move.cu: ops that move elements, by their width. KEEL_WIDTH is a list of widths, for the instances.
#define LEAST_BLOCKS 4
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "indices.cuh"
#include "vectors.cuh"

// Numbers: count, rank, start in x, start in y, 1 if 32 bits are enough for offsets, sizes, strides of x, strides of y. A thread
// has several elements on their way. ops/copy.cc
template <class T, class I>
DEVICE void copy(const KeelArgs& args) {
  constexpr int kEach = 4;
  const T* x = operand<const T>(args, 0) + args.numbers[2];
  T* y = operand<T>(args, 1) + args.numbers[3];
  const i64 count = args.numbers[0];
  for (i64 first = first_vector<kEach>(); first < count; first += grid_size() * kEach) {
    T held[kEach] = {};
    i64 at[kEach][2];
    UNROLL for (int e = 0; e < kEach; e++) {
      const i64 i = first + e * kThreads;
      if (i >= count) continue;
      find_offsets<2>(args.numbers + 5, (int)args.numbers[1], (I)i, at[e]);
      held[e] = x[at[e][0]];
    }
    UNROLL for (int e = 0; e < kEach; e++)
      if (first + e * kThreads < count) y[at[e][1]] = held[e];
  }
}
template <class T>
DEVICE void copy(const KeelArgs& args) {
  args.numbers[4] ? copy<T, u32>(args) : copy<T, i64>(args);
}

// Tiles of matrices x[columns][rows] and y[rows][columns], through shared memory, so that both are read and written along
// rows of memory. A thread has all its elements of a tile on their way. Numbers: matrices, rows, columns, distance of columns in
// x, of rows in y, start in x, start in y, rank of the other dims, their sizes, strides of x, strides of y. ops/copy.cc
template <class T, int TILE>
DEVICE void transpose(const KeelArgs& args) {
  constexpr int kEach = TILE * TILE / kThreads, kApart = kThreads / TILE;
  __shared__ T tile[TILE][TILE + 1];
  const i64 *n = args.numbers, rows = n[1], columns = n[2];
  const u32 down = (u32)((rows + TILE - 1) / TILE), across = (u32)((columns + TILE - 1) / TILE);
  const int along = (int)threadIdx.x % TILE, line = (int)threadIdx.x / TILE;
  for (i64 item = blockIdx.x; item < n[0] * down * across; item += gridDim.x) {
    const i64 matrix = item / down / across;
    const u32 place = (u32)(item - matrix * down * across);
    const i64 row = (i64)(place % down) * TILE, column = (i64)(place / down) * TILE;
    i64 at[2];
    find_offsets<2>(n + 8, (int)n[7], matrix, at);
    const T* x = operand<const T>(args, 0) + n[5] + at[0] + row + along;
    T* y = operand<T>(args, 1) + n[6] + at[1] + column + along;
    T held[kEach] = {};
    UNROLL for (int e = 0; e < kEach; e++) {
      const i64 c = column + line + e * kApart;
      if (row + along < rows && c < columns) held[e] = x[c * n[3]];
    }
    UNROLL for (int e = 0; e < kEach; e++) tile[line + e * kApart][along] = held[e];
    __syncthreads();
    UNROLL for (int e = 0; e < kEach; e++) held[e] = tile[along][line + e * kApart];
    UNROLL for (int e = 0; e < kEach; e++) {
      const i64 r = row + line + e * kApart;
      if (column + along < columns && r < rows) y[r * n[4]] = held[e];
    }
    __syncthreads();
  }
}

// Numbers: count, rows, columns, diagonal, whether the upper triangle stays.
template <class T>
DEVICE void triangle(const KeelArgs& args) {
  const T* x = operand<const T>(args, 0);
  T* y = operand<T>(args, 1);
  const i64 rows = args.numbers[1], columns = args.numbers[2];
  for (i64 i = first_element(); i < args.numbers[0]; i += grid_size()) {
    const i64 diagonal = i % columns - i / columns % rows;
    const bool stays = args.numbers[4] ? diagonal >= args.numbers[3] : diagonal <= args.numbers[3];
    y[i] = stays ? x[i] : (T)0;
  }
}

// Operands x, index; result. Numbers: count, bytes of an index, size of the axis, number of indices, inner. A thread has several
// elements on their way; faults come after, for no load passes an atomic operation. I: of an index.
template <class T, class I>
DEVICE void gather(const KeelArgs& args) {
  constexpr int kEach = 4;  // ops/gather.cc
  const i64 count = args.numbers[0], size = args.numbers[2], picked = args.numbers[3], inner = args.numbers[4];
  const T* x = operand<const T>(args, 0);
  const I* indices = operand<const I>(args, 1);
  T* y = operand<T>(args, 2);
  for (i64 first = first_vector<kEach>(); first < count; first += grid_size() * kEach) {
    i64 at[kEach] = {};  // of index 0
    I index[kEach] = {};
    T held[kEach] = {};
    UNROLL for (int e = 0; e < kEach; e++) {
      const i64 j = first + e * kThreads;
      if (j >= count) continue;
      const i64 row = quotient(j, inner), batch = quotient(row, picked);
      index[e] = indices[row - batch * picked];
      at[e] = (batch * size - row) * inner + j;
    }
    UNROLL for (int e = 0; e < kEach; e++)
      if (first + e * kThreads < count && (u64)(i64)index[e] < (u64)size) held[e] = x[index[e] * inner + at[e]];
    UNROLL for (int e = 0; e < kEach; e++)
      if (const i64 j = first + e * kThreads; j < count && !is_out(args, index[e], size)) y[j] = held[e];
  }
}
template <class T>
DEVICE void gather(const KeelArgs& args) {
  args.numbers[1] == 8 ? gather<T, i64>(args) : gather<T, i32>(args);
}

// Numbers: count, bytes of an index, rank, axis, sizes of the index, bounds of x, strides of x.
template <class T>
DEVICE void gather_elements(const KeelArgs& args) {
  const i64 rank = args.numbers[2], *sizes = args.numbers + 4;
  for (i64 j = first_element(); j < args.numbers[0]; j += grid_size()) {
    i64 rest = j, at = 0;
    bool found = true;
    for (i64 d = rank - 1; d >= 0 && found; d--) {
      i64 index = rest % sizes[d];
      rest /= sizes[d];
      if (d == args.numbers[3]) index = index_at(args, 1, args.numbers[1], j);
      found = !is_out(args, index, sizes[rank + d]);
      at += index * sizes[2 * rank + d];
    }
    if (found) operand<T>(args, 2)[j] = operand<const T>(args, 0)[at];
  }
}

// Numbers: count, bytes of an index, indices of a row, rows of a batch, elements of a slice, of a batch of x,
// bounds, strides.
template <class T>
DEVICE void gather_nd(const KeelArgs& args) {
  const i64 k = args.numbers[2], rows = args.numbers[3], slice = args.numbers[4];
  for (i64 j = first_element(); j < args.numbers[0]; j += grid_size()) {
    const i64 row = j / slice;
    i64 at = row / rows * args.numbers[5] + j % slice;
    bool found = true;
    for (i64 d = 0; d < k && found; d++) {
      const i64 index = index_at(args, 1, args.numbers[1], row * k + d);
      found = !is_out(args, index, args.numbers[6 + d]);
      at += index * args.numbers[6 + k + d];
    }
    if (found) operand<T>(args, 2)[j] = operand<const T>(args, 0)[at];
  }
}

typedef Vector<u32, 4> Wide;
KERNEL(copy_b128) { copy<Wide>(args); }
KERNEL(gather_b128) { gather<Wide>(args); }
BLOCK_KERNEL(transpose_large_b32) { transpose<u32, 64>(args); }

#define WIDTH(T, name)                                            \
  KERNEL(copy_##name) { copy<T>(args); }                          \
  BLOCK_KERNEL(transpose_##name) { transpose<T, sizeof(T) < 4 ? 64 : 32>(args); } \
  KERNEL(triangle_##name) { triangle<T>(args); }                  \
  KERNEL(gather_##name) { gather<T>(args); }                      \
  KERNEL(gather_elements_##name) { gather_elements<T>(args); }    \
  KERNEL(gather_nd_##name) { gather_nd<T>(args); }
WIDTH(u8, b8)
WIDTH(u16, b16)
WIDTH(u32, b32)
WIDTH(u64, b64)
