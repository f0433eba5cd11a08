// matmul.cu: products of matrices by tiles, with batches and an optional bias. ops/matmul.cc
//   matmul_S        tiles of 64 x 64 results
//   matmul_small_S  tiles of 16 x 16: more blocks
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "tiles.cuh"

// Numbers; then sizes of the batch dims, and strides of a and b there.
struct Plan {
  i64 rows, columns, inner, batches, a_row, a_inner, b_inner, b_column, bias, rank;
};

// For tiles.cuh: the matrices from the first row, column and k of a tile.
template <class S, class C>
struct Matrices {
  const S *a, *b;
  i64 rows, columns, left_of_inner;
  const Plan& p;

  DEVICE bool left_along_inner() const { return p.a_inner == 1; }
  DEVICE bool right_along_inner() const { return p.b_column != 1; }
  DEVICE void prepare(i64 k) {
    if (k == 0) return;
    left_of_inner -= kDepth, a += kDepth * p.a_inner, b += kDepth * p.b_inner;
  }
  DEVICE C left(int row, int k) const { return row < rows && k < left_of_inner ? (C)Number<S>::from(a[row * p.a_row + k * p.a_inner]) : (C)0; }
  DEVICE C right(int k, int column) const {
    return column < columns && k < left_of_inner ? (C)Number<S>::from(b[k * p.b_inner + column * p.b_column]) : (C)0;
  }
};

// Operands a, b, result, bias.
template <class S, int EACH>
DEVICE void matmul(const KeelArgs& args) {
  typedef typename SumType<Compute<S>>::Type C;
  constexpr int kTile = kAcross * EACH;
  const Plan& p = *(const Plan*)args.numbers;
  const i64 across = (p.columns + kTile - 1) / kTile, down = (p.rows + kTile - 1) / kTile;
  for (i64 tile = blockIdx.x; tile < across * down * p.batches; tile += gridDim.x) {
    const i64 batch = tile / (across * down), row0 = tile / across % down * kTile, column0 = tile % across * kTile;
    i64 at[2];
    find_offsets<2>(args.numbers + sizeof(Plan) / sizeof(i64), (int)p.rank, batch, at);
    Matrices<S, C> operands = {operand<const S>(args, 0) + at[0] + row0 * p.a_row, operand<const S>(args, 1) + at[1] + column0 * p.b_column,
                               p.rows - row0, p.columns - column0, p.inner, p};
    C sums[EACH][EACH] = {};
    multiply_tile(operands, 0, p.inner, sums);
    UNROLL for (int i = 0; i < EACH; i++)
      UNROLL for (int j = 0; j < EACH; j++) {
        const i64 row = row0 + tile_row<EACH>(i), column = column0 + tile_column<EACH>(j);
        if (row >= p.rows || column >= p.columns) continue;
        const C bias = p.bias ? (C)Number<S>::from(operand<const S>(args, 3)[column]) : (C)0;
        operand<S>(args, 2)[(batch * p.rows + row) * p.columns + column] = Number<S>::to((Compute<S>)(p.bias ? sums[i][j] + bias : sums[i][j]));
      }
  }
}

#define DTYPE(S, name)                               \
  BLOCK_KERNEL(matmul_##name) { matmul<S, 4>(args); } \
  BLOCK_KERNEL(matmul_small_##name) { matmul<S, 1>(args); }
#define ONLY_NUMBERS
#include "dtypes.inc"
