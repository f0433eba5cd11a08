// int8.cu: products of matrices of 8-bit integers less their zero points, exact in i32, which wraps. Tiles as in matmul.cu.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "tiles.cuh"

// Of a matrix. Zero points have a stride of 0 in dims that share one.
struct Side {
  i64 outer, inner, zero_outer, zero_inner;  // strides; outer: rows of a, columns of b
  i64 flip;                                  // 128 for i8, 0 for u8
  i64 has_zero;
};
// ops/int8.cc; then sizes of the batch dims, and strides of a, b and the zero points there.
struct Plan {
  i64 rows, columns, inner, batches;
  Side a, b;
  i64 rank;
};

// One of the matrices from the first row or column and k of a tile.
struct Bytes {
  const Side& side;
  const u8 *at, *zero;
  i64 count;

  DEVICE Bytes(const Side& s, const u8* x, const u8* z, i64 first, i64 all)
      : side(s), at(x + first * s.outer), zero(z + first * s.zero_outer), count(all - first) {}
  DEVICE u32 value(u8 bits) const { return (u32)(bits ^ (u32)side.flip) - (u32)side.flip; }
  DEVICE void advance() { at += kDepth * side.inner, zero += kDepth * side.zero_inner; }
  DEVICE u32 get(int i, int k) const {
    if (i >= count) return 0;
    const u32 x = value(at[i * side.outer + k * side.inner]);
    return side.has_zero ? x - value(zero[i * side.zero_outer + k * side.zero_inner]) : x;
  }
};

// For tiles.cuh.
struct Matrices {
  Bytes a, b;
  i64 left_of_inner;
  static DEVICE bool left_along_inner() { return true; }
  static DEVICE bool right_along_inner() { return false; }
  DEVICE void prepare(i64 k) {
    if (k == 0) return;
    left_of_inner -= kDepth, a.advance(), b.advance();
  }
  DEVICE u32 left(int row, int k) const { return k < left_of_inner ? a.get(row, k) : 0; }
  DEVICE u32 right(int k, int column) const { return k < left_of_inner ? b.get(column, k) : 0; }
};

// Operands a, b, result, zero points of a, of b.
template <int EACH>
DEVICE void int8(const KeelArgs& args) {
  constexpr int kTile = kAcross * EACH;
  const Plan& p = *(const Plan*)args.numbers;
  const i64 across = (p.columns + kTile - 1) / kTile, down = (p.rows + kTile - 1) / kTile;
  for (i64 tile = blockIdx.x; tile < across * down * p.batches; tile += gridDim.x) {
    const i64 batch = tile / (across * down), row0 = tile / across % down * kTile, column0 = tile % across * kTile;
    i64 at[4];
    find_offsets<4>(args.numbers + sizeof(Plan) / sizeof(i64), (int)p.rank, batch, at);
    Matrices operands = {{p.a, operand<const u8>(args, 0) + at[0], operand<const u8>(args, 3) + at[2], row0, p.rows},
                         {p.b, operand<const u8>(args, 1) + at[1], operand<const u8>(args, 4) + at[3], column0, p.columns},
                         p.inner};
    u32 sums[EACH][EACH] = {};
    multiply_tile(operands, 0, p.inner, sums);
    UNROLL for (int i = 0; i < EACH; i++)
      UNROLL for (int j = 0; j < EACH; j++) {
        const i64 row = row0 + tile_row<EACH>(i), column = column0 + tile_column<EACH>(j);
        if (row < p.rows && column < p.columns) operand<u32>(args, 2)[(batch * p.rows + row) * p.columns + column] = sums[i][j];
      }
  }
}

BLOCK_KERNEL(int8) { int8<4>(args); }
BLOCK_KERNEL(int8_small) { int8<1>(args); }
