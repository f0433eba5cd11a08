// int8.cu: products of matrices of 8-bit integers less their zero points, exact in i32, which wraps.
//   int8, int8_small  tiles as in matmul.cu, with any zero points
//   int8_by_warps     tiles of 64 x 64 results by tensor cores, with zero points that are the same along the inner dim. Their part
//                     of a sum is subtracted at its end: sum of (a - za)(b - zb) = sum of a b - za * (sum of b) - zb * (sum of a) + n za zb
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "copies.cuh"
#include "numbers.cuh"
#include "tiles.cuh"
#include "warp.cuh"

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

// ---- by warps
constexpr int kSize = 64, kChunk = 64, kPitch = kChunk + 16;  // results of a side, bytes of the inner dim at a time
constexpr int kRowsOfWarp = 16, kColumnsOfWarp = 32;          // 4 x 2 warps

// A thread's bytes of a chunk, signed: 16 of a row of a; 4 of each of 4 columns of b. And their sums.
struct Chunk {
  const Plan& p;
  const u8 *a, *b;
  int rows, columns;
  i64 inner;
  bool a_aligned, b_aligned;
  u32 left[4], right[4];
  i32 left_sum, right_sums[4];

  static DEVICE int row() { return (int)threadIdx.x / 4; }
  static DEVICE int row_at() { return (int)threadIdx.x % 4 * 16; }
  // 8 groups of k and 4 of columns in a warp: few bank conflicts.
  static DEVICE int k_at() { return ((int)threadIdx.x % 8 + (int)threadIdx.x / 128 * 8) * 4; }
  static DEVICE int column_at() { return (int)threadIdx.x % 128 / 8 * 4; }

  DEVICE u32 flip(const Side& s) const { return s.flip ? 0 : 0x80808080u; }  // u8 less 128 is i8
  // Bytes from `at` on; the first `n` exist.
  static DEVICE u32 word(const u8* at, i64 n, bool aligned, u32 flip) {
    if (n >= 4 && aligned) return *(const u32*)at ^ flip;
    u32 all = 0;
    NO_UNROLL for (int i = 0; i < 4; i++)
      if (i < n) all |= (u32)(u8)(at[i] ^ flip) << 8 * i;
    return all;
  }
  DEVICE void load() {
    const i64 more = row() < rows ? inner - row_at() : 0;
    const u8* from = a + row() * p.a.outer + row_at();
    if (a_aligned) {
      const Words<4> words = more > 0 ? *(const Words<4>*)from : Words<4>{};
      UNROLL for (int i = 0; i < 4; i++) left[i] = more > 0 ? words.at[i] ^ flip(p.a) : 0;
    } else {
      UNROLL for (int i = 0; i < 4; i++) left[i] = word(from + 4 * i, more - 4 * i, false, flip(p.a));
    }
    UNROLL for (int k = 0; k < 4; k++)
      right[k] = word(b + (k_at() + k) * p.b.inner + column_at(), k_at() + k < inner ? columns - column_at() : 0, b_aligned, flip(p.b));
  }
  DEVICE void advance() { a += kChunk, b += kChunk * p.b.inner, inner -= kChunk; }
  // To shared memory: rows of a, and columns of b. The bytes of b are transposed.
  DEVICE void store(u8* rows_of_a, u8* columns_of_b) {
    *(Words<4>*)(rows_of_a + row() * kPitch + row_at()) = {{left[0], left[1], left[2], left[3]}};
    UNROLL for (int i = 0; i < 4; i++) left_sum = add_bytes(left[i], left_sum);
    const u32 low01 = choose_bytes(right[0], right[1], 0x5140), high01 = choose_bytes(right[0], right[1], 0x7362);
    const u32 low23 = choose_bytes(right[2], right[3], 0x5140), high23 = choose_bytes(right[2], right[3], 0x7362);
    const u32 turned[4] = {choose_bytes(low01, low23, 0x5410), choose_bytes(low01, low23, 0x7632), choose_bytes(high01, high23, 0x5410),
                           choose_bytes(high01, high23, 0x7632)};
    UNROLL for (int i = 0; i < 4; i++) {
      *(u32*)(columns_of_b + (column_at() + i) * kPitch + k_at()) = turned[i];
      right_sums[i] = add_bytes(turned[i], right_sums[i]);
    }
  }
};

// Adds the products of a chunk. A warp has 16 rows, and 4 times 8 columns.
DEVICE void multiply_chunk(const u8* rows_of_a, const u8* columns_of_b, i32 (&sums)[4][4]) {
  const int lane = lane_of_thread(), warp = (int)threadIdx.x / 32;
  const u8* a = rows_of_a + (warp / 2 * kRowsOfWarp + lane % 16) * kPitch + lane / 16 * 16;
  const u8* b = columns_of_b + (warp % 2 * kColumnsOfWarp + lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * 16;
  UNROLL for (int k = 0; k < kChunk; k += 32) {
    u32 left[4], right[4];
    load_matrices(left, a + k);
    UNROLL for (int n = 0; n < 4; n += 2) {
      load_matrices(right, b + n * 8 * kPitch + k);
      multiply_bytes(sums[n], left, right[0], right[1]);
      multiply_bytes(sums[n + 1], left, right[2], right[3]);
    }
  }
}

// Zero points of a row or column as the bytes are: less 128 for u8.
DEVICE u32 zero_point(const Side& s, const u8* zero, i64 i) {
  const u32 z = s.has_zero ? ((u32)zero[i * s.zero_outer] ^ (u32)s.flip) - (u32)s.flip : 0u;
  return s.flip ? z : z - 128;
}

struct Shared {
  alignas(16) u8 rows[kSize * kPitch];
  alignas(16) u8 columns[kSize * kPitch];
  i32 row_parts[kSize][4], column_parts[kSize][kChunk / 4];
  u32 row_sums[kSize], column_sums[kSize];
};

DEVICE void share_sums(Shared& shared, const Chunk& chunk) {
  shared.row_parts[Chunk::row()][threadIdx.x % 4] = chunk.left_sum;
  UNROLL for (int i = 0; i < 4; i++) shared.column_parts[Chunk::column_at() + i][Chunk::k_at() / 4] = chunk.right_sums[i];
  __syncthreads();
  const int i = (int)threadIdx.x % kSize;
  u32 sum = 0;
  if ((int)threadIdx.x < kSize) {
    for (int part = 0; part < 4; part++) sum += (u32)shared.row_parts[i][part];
    shared.row_sums[i] = sum;
  } else if ((int)threadIdx.x < 2 * kSize) {
    for (int part = 0; part < kChunk / 4; part++) sum += (u32)shared.column_parts[i][part];
    shared.column_sums[i] = sum;
  }
  __syncthreads();
}

DEVICE void int8_by_warps(const KeelArgs& args) {
  __shared__ Shared shared;
  const Plan& p = *(const Plan*)args.numbers;
  const i64 across = (p.columns + kSize - 1) / kSize, down = (p.rows + kSize - 1) / kSize;
  for (i64 tile = blockIdx.x; tile < across * down * p.batches; tile += gridDim.x) {
    const i64 batch = tile / (across * down), row0 = tile / across % down * kSize, column0 = tile % across * kSize;
    i64 at[4];
    find_offsets<4>(args.numbers + sizeof(Plan) / sizeof(i64), (int)p.rank, batch, at);
    const u8 *a = operand<const u8>(args, 0) + at[0] + row0 * p.a.outer, *b = operand<const u8>(args, 1) + at[1] + column0;
    const i64 rows = p.rows - row0, columns = p.columns - column0;
    Chunk next = {p, a, b, (int)(rows < kSize ? rows : kSize), (int)(columns < kSize ? columns : kSize), p.inner,
                  ((u64)a | (u64)p.a.outer) % 16 == 0, ((u64)b | (u64)p.b.inner) % 4 == 0, {}, {}, 0, {}};
    i32 sums[4][4] = {};
    next.load();
    NO_UNROLL for (i64 k = 0; k < p.inner; k += kChunk) {
      next.store(shared.rows, shared.columns);
      __syncthreads();
      next.advance();
      next.load();
      multiply_chunk(shared.rows, shared.columns, sums);
      __syncthreads();
    }
    share_sums(shared, next);
    const u8 *za = operand<const u8>(args, 3) + at[2], *zb = operand<const u8>(args, 4) + at[3];
    const int row_of_tile = (int)threadIdx.x / 64 * kRowsOfWarp + lane_of_thread() / 4;
    UNROLL for (int n = 0; n < 4; n++)
      UNROLL for (int i = 0; i < 4; i++) {
        const int row = row_of_tile + i / 2 * 8, column = (int)threadIdx.x / 32 % 2 * kColumnsOfWarp + n * 8 + lane_of_thread() % 4 * 2 + i % 2;
        if (row >= next.rows || column >= next.columns) continue;
        const u32 z = zero_point(p.a, za, row0 + row), y = zero_point(p.b, zb, column0 + column);
        operand<u32>(args, 2)[(batch * p.rows + row0 + row) * p.columns + column0 + column] =
            (u32)sums[n][i] - z * shared.column_sums[column] - y * shared.row_sums[row] + (u32)p.inner * z * y;
      }
    __syncthreads();
  }
}

BLOCK_KERNEL(int8_by_warps) { int8_by_warps(args); }
BLOCK_KERNEL(int8) { int8<4>(args); }
BLOCK_KERNEL(int8_small) { int8<1>(args); }
