// attention.cu: softmax(q k' * scale + mask) v in one launch, for halves, by tensor cores. A block has 128 or 256 rows of one matrix, a warp
// 16 or 32 of them. It goes over the keys in tiles, of which the next one is copied meanwhile, and keeps for each row the highest
// score so far and the sum of weights relative to it, so that scores are never stored.
#define LEAST_BLOCKS 1  // a thread keeps its part of q, scores and results in registers
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "copies.cuh"
#include "warp.cuh"

// The numbers, then the sizes of the outer dims and the mask's strides in them.
struct AttentionNumbers {
  i64 matrices, rows, columns, width, scale, causal, zero_nan, masked, mask_row, mask_column, rank;
};
DEVICE const AttentionNumbers& numbers_of(const KeelArgs& args) { return *(const AttentionNumbers*)args.numbers; }

// One matrix of the batch.
template <class S>
struct Operands {
  const S *q, *k, *v, *mask;
  int rows, columns, width;
  bool causal;
};

// WIDTH: of rows in registers and shared memory, at least that of the operands. KEYS: of a tile. TILES: of 16 rows, for a warp.
template <class S, int WIDTH, int KEYS, int TILES>
struct Attention {
  static constexpr int kStride = WIDTH + 8;  // so that 8 rows of a matrix are in different banks
  static constexpr int kRows = kThreads / 32 * 16 * TILES;
  typedef S Tile[KEYS][kStride];

  const AttentionNumbers* n;
  Operands<S> of;
  Tile (*tiles)[2];  // two turns of keys and values
  int first_row, g, t;
  u32 queries[TILES][WIDTH / 16][4];
  f32 scores[TILES][KEYS / 8][4], sums[TILES][WIDTH / 8][4], highest[TILES][2], weights[TILES][2];

  DEVICE int row(int tile, int half) const { return first_row + 16 * tile + g + 8 * half; }

  DEVICE u32 pair(const S* from, int row, int column) const {
    if (row >= of.rows || column >= of.width) return 0;
    const S* at = from + (i64)row * of.width + column;
    return at[0].bits | (u32)at[1].bits << 16;
  }
  DEVICE void start() {
    UNROLL
    for (int m = 0; m < TILES; m++) {
      highest[m][0] = highest[m][1] = Ends<f32>::least(), weights[m][0] = weights[m][1] = 0;
      UNROLL
      for (int s = 0; s < WIDTH / 16; s++)
        UNROLL
        for (int i = 0; i < 4; i++) queries[m][s][i] = pair(of.q, row(m, i % 2), s * 16 + 2 * t + i / 2 * 8);
      UNROLL
      for (int j = 0; j < WIDTH / 8; j++)
        UNROLL
        for (int i = 0; i < 4; i++) sums[m][j][i] = 0;
    }
  }

  // Copies 8 elements of keys or values at a time; zeros beyond the last.
  DEVICE void load_tile(int turn, int first) {
    constexpr int kPieces = WIDTH / 8, kAll = KEYS * kPieces;
    UNROLL
    for (int step = 0; step < 2 * kAll / kThreads; step++) {
      const int i = step * kThreads + (int)threadIdx.x, which = i / kAll, key = i % kAll / kPieces, column = i % kPieces * 8;
      const bool there = first + key < of.columns && column < of.width;
      const S* all = which ? of.v : of.k;
      const S* from = there ? all + (i64)(first + key) * of.width + column : all;
      S* to = &tiles[turn][which][key][column];
      if ((u64)all % 16 == 0) {
        copy_async<16>(to, from, there);
        continue;
      }
      for (int e = 0; e < 8; e++) to[e] = there ? from[e] : S{0};
    }
  }

  // What the lane names for load_matrices: the four matrices are two by two, in order of keys first or of columns first.
  DEVICE const S* matrix_row(const Tile& tile, int key, int column, bool keys_first) const {
    const int lane = (int)threadIdx.x % 32, matrix = lane / 8;
    const int fast = matrix % 2 * 8, slow = matrix / 2 * 8;
    return &tile[key + (keys_first ? fast : slow) + lane % 8][column + (keys_first ? slow : fast)];
  }

  DEVICE void score(const Tile& keys) {
    UNROLL
    for (int m = 0; m < TILES; m++)
      UNROLL
      for (int j = 0; j < KEYS / 8; j++)
        UNROLL
        for (int i = 0; i < 4; i++) scores[m][j][i] = 0;
    UNROLL
    for (int s = 0; s < WIDTH / 16; s++)
      UNROLL
      for (int j = 0; j < KEYS / 16; j++) {
        u32 b[4];
        load_matrices(b, matrix_row(keys, j * 16, s * 16, false));
        UNROLL
        for (int m = 0; m < TILES; m++) {
          Halves<S>::multiply(scores[m][2 * j], queries[m][s], b);
          Halves<S>::multiply(scores[m][2 * j + 1], queries[m][s], b + 2);
        }
      }
  }

  // Scores become exponents of 2.
  DEVICE void scale_scores(int m, int first) {
    constexpr f32 kLog2E = 1.44269504f;
    const f32 scale = (f32)__longlong_as_double(n->scale) * (of.mask ? 1.0f : kLog2E);
    const bool edge = first + KEYS > of.columns || (of.causal && first + KEYS > first_row + 16 * m);
    UNROLL
    for (int j = 0; j < KEYS / 8; j++)
      UNROLL
      for (int i = 0; i < 4; i++) {
        const int column = first + j * 8 + 2 * t + i % 2, r = row(m, i / 2);
        f32& x = scores[m][j][i];
        x *= scale;
        if (of.mask) {
          if (column < of.columns && r < of.rows) x += Number<S>::from(of.mask[r * n->mask_row + column * n->mask_column]);
          x *= kLog2E;
        }
        if (edge && (column >= of.columns || (of.causal && column > r))) x = Ends<f32>::least();
      }
  }

  // Scores become weights; the sums so far are made relative to the new highest scores.
  DEVICE void weigh(int m, int half) {
    f32 high = highest[m][half];
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) high = fmaxf(high, fmaxf(scores[m][j][2 * half], scores[m][j][2 * half + 1]));
    high = fmaxf(high, of_lane_xor(high, 1));
    high = fmaxf(high, of_lane_xor(high, 2));
    const f32 base = high == Ends<f32>::least() ? 0.0f : high, before = exp2f(highest[m][half] - base);
    highest[m][half] = high;
    weights[m][half] *= before;
    UNROLL
    for (int j = 0; j < KEYS / 8; j++)
      UNROLL
      for (int i = 2 * half; i < 2 * half + 2; i++)
        weights[m][half] += scores[m][j][i] = exp2f(scores[m][j][i] - base);
    UNROLL
    for (int j = 0; j < WIDTH / 8; j++) sums[m][j][2 * half] *= before, sums[m][j][2 * half + 1] *= before;
  }

  DEVICE void add_values(const Tile& values) {
    UNROLL
    for (int j = 0; j < KEYS / 16; j++) {
      u32 a[TILES][4];
      UNROLL
      for (int m = 0; m < TILES; m++)
        UNROLL
        for (int i = 0; i < 4; i++) {
          const f32* two = scores[m][2 * j + i / 2] + i % 2 * 2;
          a[m][i] = Halves<S>::of(two[0], two[1]);
        }
      UNROLL
      for (int s = 0; s < WIDTH / 16; s++) {
        u32 b[4];
        load_matrices_transposed(b, matrix_row(values, j * 16, s * 16, true));
        UNROLL
        for (int m = 0; m < TILES; m++) {
          Halves<S>::multiply(sums[m][2 * s], a[m], b);
          Halves<S>::multiply(sums[m][2 * s + 1], a[m], b + 2);
        }
      }
    }
  }

  DEVICE void store(int m, int half, S* y) const {
    f32 all = weights[m][half];
    all += of_lane_xor(all, 1);
    all += of_lane_xor(all, 2);
    const bool zero = n->zero_nan && !(all > 0 && all < Ends<f32>::greatest());
    const f32 factor = 1.0f / all;
    if (row(m, half) >= of.rows) return;
    S* to = y + (i64)row(m, half) * of.width + 2 * t;
    UNROLL
    for (int j = 0; j < WIDTH / 8; j++) {
      if (j * 8 >= of.width) continue;
      const f32* two = sums[m][j] + 2 * half;
      const u32 both = zero ? 0 : Halves<S>::of(two[0] * factor, two[1] * factor);
      if ((u64)y % 4 == 0)
        *(u32*)(to + j * 8) = both;
      else
        to[j * 8] = S{(u16)both}, to[j * 8 + 1] = S{(u16)(both >> 16)};
    }
  }

  DEVICE void run(int block_row, S* y) {
    first_row = block_row + (int)threadIdx.x / 32 * 16 * TILES;
    start();
    const int seen = of.causal && block_row + kRows < of.columns ? block_row + kRows : of.columns;
    load_tile(0, 0);
    NO_UNROLL
    for (int first = 0, turn = 0; first < seen; first += KEYS, turn ^= 1) {
      end_copies();
      await_copies<0>();
      __syncthreads();
      if (first + KEYS < seen) load_tile(turn ^ 1, first + KEYS);
      score(tiles[turn][0]);
      UNROLL
      for (int m = 0; m < TILES; m++) scale_scores(m, first), weigh(m, 0), weigh(m, 1);
      add_values(tiles[turn][1]);
    }
    UNROLL
    for (int m = 0; m < TILES; m++) store(m, 0, y), store(m, 1, y);
  }
};

// Operands q, k, v, result, mask.
template <class S, int WIDTH, int KEYS, int TILES>
DEVICE void attention(const KeelArgs& args) {
  typedef Attention<S, WIDTH, KEYS, TILES> Part;
  alignas(16) __shared__ typename Part::Tile tiles[2][2];
  const AttentionNumbers& n = numbers_of(args);
  const i64 parts = (n.rows + Part::kRows - 1) / Part::kRows;
  for (i64 i = blockIdx.x; i < parts * n.matrices; i += gridDim.x) {
    // The last rows, which see most, first.
    const i64 matrix = i % n.matrices, part = parts - 1 - i / n.matrices, of_rows = matrix * n.rows * n.width,
              of_columns = matrix * n.columns * n.width;
    i64 of_mask[1];
    find_offsets<1>(args.numbers + sizeof(AttentionNumbers) / sizeof(i64), (int)n.rank, matrix, of_mask);
    __syncthreads();  // before the tiles are written again
    const int lane = (int)threadIdx.x % 32;
    Part here;
    here.n = &n, here.tiles = tiles, here.g = lane / 4, here.t = lane % 4;
    here.of = {operand<const S>(args, 0) + of_rows,
               operand<const S>(args, 1) + of_columns,
               operand<const S>(args, 2) + of_columns,
               n.masked ? operand<const S>(args, 4) + of_mask[0] : nullptr,
               (int)n.rows,
               (int)n.columns,
               (int)n.width,
               n.causal != 0};
    here.run((int)part * Part::kRows, operand<S>(args, 3) + of_rows);
  }
}

#define HALVES(S)                                                        \
  BLOCK_KERNEL(attention_64_1_##S) { attention<S, 64, 64, 1>(args); }    \
  BLOCK_KERNEL(attention_64_2_##S) { attention<S, 64, 64, 2>(args); }    \
  BLOCK_KERNEL(attention_128_1_##S) { attention<S, 128, 32, 1>(args); }
HALVES(f16)
HALVES(bf16)
