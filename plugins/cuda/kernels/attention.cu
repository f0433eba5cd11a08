// attention.cu: softmax(q k' * scale + mask) v in one launch, for halves, by tensor cores. A block has 128 rows of one matrix, a
// warp 16 of them. It goes over the keys in tiles, copies the next one meanwhile, and keeps for each row the
// highest score so far and the sum of weights relative to it, so that scores are never stored.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "copies.cuh"
#include "warp.cuh"
#include "attention.cuh"

constexpr int kOfWarp = 16, kRows = kThreads / 32 * kOfWarp;  // ops/attention.cc

// WIDTH: of rows in registers and shared memory, at least that of the operands. KEYS: of a tile. SCALED_FIRST: scores are
// multiplied by scale, and a mask is added, before the highest is found; else scale is at least 0.
template <class S, int WIDTH, int KEYS, bool SCALED_FIRST>
struct Attention {
  static constexpr int kStride = WIDTH + 8;  // so that 8 rows of a matrix are in different banks
  typedef S Tile[KEYS][kStride];

  Operands<S> of;
  f32 factor;        // of the exponents of 2
  Tile (*tiles)[2];  // two turns of keys and values
  int first_row, g, t;
  u32 queries[WIDTH / 16][4];
  f32 scores[KEYS / 8][4], sums[WIDTH / 8][4], highest[2], weights[2];

  DEVICE int row(int half) const { return first_row + g + 8 * half; }

  DEVICE u32 pair(const S* from, int row, int column) const {
    if (row >= of.rows() || column >= of.width()) return 0;
    const S* at = from + (i64)row * of.width() + column;
    return at[0].bits | (u32)at[1].bits << 16;
  }
  DEVICE void start() {
    highest[0] = highest[1] = Ends<f32>::least(), weights[0] = weights[1] = 0;
    UNROLL
    for (int s = 0; s < WIDTH / 16; s++)
      UNROLL
      for (int i = 0; i < 4; i++) queries[s][i] = pair(of.q, row(i % 2), s * 16 + 2 * t + i / 2 * 8);
    UNROLL
    for (int j = 0; j < WIDTH / 8; j++)
      UNROLL
      for (int i = 0; i < 4; i++) sums[j][i] = 0;
  }

  // Copies 8 elements of keys or values at a time; zeros beyond the last.
  DEVICE void load_tile(int turn, int first) {
    constexpr int kPieces = WIDTH / 8, kAll = KEYS * kPieces;
    UNROLL
    for (int step = 0; step < 2 * kAll / kThreads; step++) {
      const int i = step * kThreads + (int)threadIdx.x, which = i / kAll, key = i % kAll / kPieces, column = i % kPieces * 8;
      const bool there = first + key < of.columns() && column < of.width();
      const S* all = which ? of.v : of.k;
      const S* from = there ? all + (i64)(first + key) * of.width() + column : all;
      S* to = &tiles[turn][which][key][column];
      if ((u64)all % 16 == 0) {
        copy_async<16>(to, from, there);
        continue;
      }
      for (int e = 0; e < 8; e++) to[e] = there ? from[e] : S{0};
    }
  }

  // The lane's operand of load_matrices: four matrices, two by two, in order of keys first or of columns first.
  DEVICE const S* matrix_row(const Tile& tile, int key, int column, bool keys_first) const {
    const int lane = (int)threadIdx.x % 32, matrix = lane / 8;
    const int fast = matrix % 2 * 8, slow = matrix / 2 * 8;
    return &tile[key + (keys_first ? fast : slow) + lane % 8][column + (keys_first ? slow : fast)];
  }

  DEVICE void score(const Tile& keys) {
    UNROLL
    for (int j = 0; j < KEYS / 8; j++)
      UNROLL
      for (int i = 0; i < 4; i++) scores[j][i] = 0;
    UNROLL
    for (int s = 0; s < WIDTH / 16; s++)
      UNROLL
      for (int j = 0; j < KEYS / 16; j++) {
        u32 b[4];
        load_matrices(b, matrix_row(keys, j * 16, s * 16, false));
        Halves<S>::multiply(scores[2 * j], queries[s], b);
        Halves<S>::multiply(scores[2 * j + 1], queries[s], b + 2);
      }
  }

  // Adds the mask; scores of keys that the row does not see become -infinity.
  DEVICE void mask_scores(int first) {
    UNROLL
    for (int j = 0; j < KEYS / 8; j++)
      UNROLL
      for (int i = 0; i < 4; i++) {
        const int column = first + j * 8 + 2 * t + i % 2, r = row(i / 2);
        f32& x = scores[j][i];
        if (SCALED_FIRST) x *= of.scale;
        if (SCALED_FIRST && of.mask && column < of.columns() && r < of.rows())
          x += Number<S>::from(of.mask[r * of.n->mask_row + column * of.n->mask_column]);
        if (column >= of.columns() || (of.causal() && column > r)) x = Ends<f32>::least();
      }
  }

  // Scores become weights, 2 to the power of factor * score; the sums so far are made relative to the new highest score.
  DEVICE void weigh(int half) {
    f32 high = highest[half];
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) high = fmaxf(high, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
    high = fmaxf(high, of_lane_xor(high, 1));
    high = fmaxf(high, of_lane_xor(high, 2));
    const f32 base = high == Ends<f32>::least() ? 0.0f : -high * factor;
    const f32 before = power_of_2(fmaf(highest[half], factor, base));
    highest[half] = high;
    f32 sum = weights[half] * before;
    UNROLL
    for (int j = 0; j < KEYS / 8; j++)
      UNROLL
      for (int i = 2 * half; i < 2 * half + 2; i++) sum += scores[j][i] = power_of_2(fmaf(scores[j][i], factor, base));
    weights[half] = sum;
    UNROLL
    for (int j = 0; j < WIDTH / 8; j++) sums[j][2 * half] *= before, sums[j][2 * half + 1] *= before;
  }

  DEVICE void add_values(const Tile& values) {
    UNROLL
    for (int j = 0; j < KEYS / 16; j++) {
      const f32 *left = scores[2 * j], *right = scores[2 * j + 1];
      const u32 a[4] = {Halves<S>::of(left[0], left[1]), Halves<S>::of(left[2], left[3]), Halves<S>::of(right[0], right[1]),
                        Halves<S>::of(right[2], right[3])};
      UNROLL
      for (int s = 0; s < WIDTH / 16; s++) {
        u32 b[4];
        load_matrices_transposed(b, matrix_row(values, j * 16, s * 16, true));
        Halves<S>::multiply(sums[2 * s], a, b);
        Halves<S>::multiply(sums[2 * s + 1], a, b + 2);
      }
    }
  }

  DEVICE void store(int half, S* y) const {
    f32 all = weights[half];
    all += of_lane_xor(all, 1);
    all += of_lane_xor(all, 2);
    const bool zero = of.n->zero_nan && !(all > 0 && all < Ends<f32>::greatest());
    const f32 factor = 1.0f / all;
    if (row(half) >= of.rows()) return;
    S* to = y + (i64)row(half) * of.width() + 2 * t;
    UNROLL
    for (int j = 0; j < WIDTH / 8; j++) {
      if (j * 8 >= of.width()) continue;
      const u32 both = zero ? 0 : Halves<S>::of(sums[j][2 * half] * factor, sums[j][2 * half + 1] * factor);
      if ((u64)y % 4 == 0)
        *(u32*)(to + j * 8) = both;
      else
        to[j * 8] = S{(u16)both}, to[j * 8 + 1] = S{(u16)(both >> 16)};
    }
  }

  DEVICE void run(int block_row, S* y) {
    first_row = block_row + (int)threadIdx.x / 32 * kOfWarp;
    start();
    const int seen = of.seen(block_row + kRows);
    load_tile(0, 0);
    NO_UNROLL
    for (int first = 0, turn = 0; first < seen; first += KEYS, turn ^= 1) {
      end_copies();
      await_copies<0>();
      __syncthreads();
      if (first + KEYS < seen) load_tile(turn ^ 1, first + KEYS);
      score(tiles[turn][0]);
      if (SCALED_FIRST || first + KEYS > of.columns() || (of.causal() && first + KEYS > first_row)) mask_scores(first);
      weigh(0), weigh(1);
      add_values(tiles[turn][1]);
    }
    store(0, y), store(1, y);
  }
};

template <class S, int WIDTH, int KEYS, bool SCALED_FIRST>
DEVICE void attention(const KeelArgs& args) {
  typedef Attention<S, WIDTH, KEYS, SCALED_FIRST> Part;
  alignas(16) __shared__ typename Part::Tile tiles[2][2];
  each_part<S, kRows>(args, [&](const Operands<S>& of, int first_row, S* y) {
    constexpr f32 kLog2E = 1.44269504f;
    const int lane = (int)threadIdx.x % 32;
    Part here;
    here.of = of, here.factor = SCALED_FIRST ? kLog2E : of.scale * kLog2E;
    here.tiles = tiles, here.g = lane / 4, here.t = lane % 4;
    here.run(first_row, y);
  });
}

// A thread keeps its part of q, scores and results in registers. Two blocks on a multiprocessor hide each other's waits.
BLOCK_KERNEL(attention_64_f16) { attention<f16, 64, 32, false>(args); }
BLOCK_KERNEL(attention_64_bf16) { attention<bf16, 64, 32, false>(args); }
#undef LEAST_BLOCKS
#define LEAST_BLOCKS 1
BLOCK_KERNEL(attention_64_masked_f16) { attention<f16, 64, 32, true>(args); }
BLOCK_KERNEL(attention_64_masked_bf16) { attention<bf16, 64, 32, true>(args); }
BLOCK_KERNEL(attention_128_f16) { attention<f16, 128, 32, false>(args); }
BLOCK_KERNEL(attention_128_bf16) { attention<bf16, 128, 32, false>(args); }
BLOCK_KERNEL(attention_128_masked_f16) { attention<f16, 128, 32, true>(args); }
BLOCK_KERNEL(attention_128_masked_bf16) { attention<bf16, 128, 32, true>(args); }
