// attention_f32.cu: softmax(q k' * scale + mask) v in one launch, for f32 in IEEE arithmetic: tensor cores would round operands to
// tf32. A block has 64 rows of one matrix, a thread 4 of them together with 15 others of its warp. As in attention.cu, it goes
// over the keys in tiles and never stores scores; their weights pass through shared memory, as operands of the second product.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "vectors.cuh"
#include "copies.cuh"
#include "warp.cuh"
#include "attention.cuh"

constexpr int kRows = 64;                                         // ops/attention.cc
constexpr int kLanes = 16, kEach = kRows / (kThreads / kLanes);  // threads of a row, rows of a thread
constexpr int kQuad = 4, kPiece = kLanes * kQuad;                 // floats of 16 bytes; columns of keys and values at a time
typedef Vector<f32, kQuad> Quad;

// A matrix in shared memory: row i of four rows. Quads are permuted by the number of the four, so that the quads of a column
// in 8 adjacent fours are in different banks, without padding.
template <int ROWS, int COLUMNS>
struct Shared {
  static constexpr int kQuads = COLUMNS / kQuad;
  f32 all[ROWS * COLUMNS];

  DEVICE f32* quad(int four, int i, int number) { return all + (four * kEach + i) * COLUMNS + (number ^ four % 8) * kQuad; }

  // Begins the copies of a part of from[rows][width]; zeros beyond it.
  DEVICE void load(const f32* from, int first_row, int first_column, int rows, int width) {
    UNROLL
    for (int step = 0; step < ROWS * kQuads / kThreads; step++) {
      const int i = step * kThreads + (int)threadIdx.x, row = first_row + i / kQuads, column = first_column + i % kQuads * kQuad;
      const bool there = row < rows && column < width;
      f32* to = quad(i / kQuads / kEach, i / kQuads % kEach, i % kQuads);
      copy_async<sizeof(Quad)>(to, there ? from + (i64)row * width + column : from, there);
    }
  }
};

// WIDTH: of rows in shared memory, at least that of the operands. KEYS: of a tile. Shared memory is 48 KB in either case.
template <int WIDTH, int KEYS>
struct Attention {
  static constexpr int kPieces = WIDTH / kPiece, kKeys = KEYS / kLanes;  // keys of a thread
  struct Memory {
    Shared<kRows, WIDTH> queries;
    Shared<KEYS, kPiece> tile;  // a piece of keys or values
    Shared<kRows, KEYS> weights;
  };

  Operands<f32> of;
  Memory& memory;
  const int block_row, lane = (int)threadIdx.x % kLanes, four = (int)threadIdx.x / kLanes;
  f32 scores[kEach][kKeys] = {}, sums[kPieces][kEach][kQuad] = {}, highest[kEach] = {}, totals[kEach] = {};

  DEVICE int row(int i) const { return block_row + four * kEach + i; }
  // The thread's keys in a tile are adjacent ones of these four.
  DEVICE int four_keys() const { return lane % (KEYS / kEach); }
  DEVICE int first_key() const { return lane / (KEYS / kEach) * kKeys; }

  DEVICE void fetch(const f32* from, int first, int piece) {
    memory.tile.load(from, first, piece * kPiece, of.columns(), of.width());
    end_copies();
  }
  static DEVICE void await_tile() {
    await_copies<0>();
    __syncthreads();
  }

  // Adds the products of one piece of the queries and the keys.
  DEVICE void score(int piece) {
    const int left = (of.width() - piece * kPiece + kQuad - 1) / kQuad, quads = left < kLanes ? left : kLanes;
    NO_UNROLL
    for (int c = 0; c < quads; c++) {
      Quad q[kEach];
      UNROLL
      for (int i = 0; i < kEach; i++) q[i] = load_vector<kQuad>(memory.queries.quad(four, i, piece * kLanes + c));
      UNROLL
      for (int j = 0; j < kKeys; j++) {
        const Quad k = load_vector<kQuad>(memory.tile.quad(four_keys(), first_key() + j, c));
        UNROLL
        for (int i = 0; i < kEach; i++)
          UNROLL
          for (int e = 0; e < kQuad; e++) scores[i][j] = fmaf(q[i].of[e], k.of[e], scores[i][j]);
      }
    }
  }

  // Scales, and adds the mask; scores of keys that the row does not see become -infinity.
  DEVICE void mask_scores(int first) {
    UNROLL
    for (int i = 0; i < kEach; i++)
      UNROLL
      for (int j = 0; j < kKeys; j++) {
        const int column = first + four_keys() * kEach + first_key() + j, r = row(i);
        f32& x = scores[i][j];
        x *= of.scale;
        if (of.mask && column < of.columns() && r < of.rows()) x += of.mask[r * of.n->mask_row + column * of.n->mask_column];
        if (column >= of.columns() || (of.causal() && column > r)) x = Ends<f32>::least();
      }
  }

  template <class F>
  static DEVICE f32 combine(f32 mine, F f) {
    UNROLL
    for (int distance = kLanes / 2; distance > 0; distance /= 2) mine = f(mine, of_lane_xor(mine, distance));
    return mine;
  }

  // Scores become weights, exp of the distance from the row's highest score; the sums so far are made relative to the new one.
  DEVICE void weigh(int i) {
    f32 high = highest[i];
    UNROLL
    for (int j = 0; j < kKeys; j++) high = fmaxf(high, scores[i][j]);
    high = combine(high, [](f32 a, f32 b) { return fmaxf(a, b); });
    const f32 base = high == Ends<f32>::least() ? 0.0f : high;  // of a row that sees no key yet: its weights are 0
    const f32 before = exp(highest[i] - base);
    highest[i] = high;
    totals[i] *= before;
    Vector<f32, kKeys> of_keys;
    UNROLL
    for (int j = 0; j < kKeys; j++) totals[i] += of_keys.of[j] = exp(scores[i][j] - base);
    store_vector(memory.weights.quad(four, i, four_keys()) + first_key(), of_keys);
    UNROLL
    for (int p = 0; p < kPieces; p++)
      UNROLL
      for (int e = 0; e < kQuad; e++) sums[p][i][e] *= before;
  }

  // Adds the products of the weights and one piece of the values.
  DEVICE void add_values(f32 (&to)[kEach][kQuad]) {
    NO_UNROLL
    for (int c = 0; c < KEYS / kQuad; c++) {
      Quad w[kEach];
      UNROLL
      for (int i = 0; i < kEach; i++) w[i] = load_vector<kQuad>(memory.weights.quad(four, i, c));
      UNROLL
      for (int k = 0; k < kQuad; k++) {
        const Quad v = load_vector<kQuad>(memory.tile.quad(c, k, lane));
        UNROLL
        for (int i = 0; i < kEach; i++)
          UNROLL
          for (int e = 0; e < kQuad; e++) to[i][e] = fmaf(w[i].of[k], v.of[e], to[i][e]);
      }
    }
  }

  DEVICE void store(int i, f32* y) const {
    const f32 all = combine(totals[i], [](f32 a, f32 b) { return a + b; });
    const bool zero = of.n->zero_nan && !(all > 0 && all < Ends<f32>::greatest());
    const f32 factor = 1 / all;
    if (row(i) >= of.rows()) return;
    UNROLL
    for (int p = 0; p < kPieces; p++) {
      const int column = p * kPiece + lane * kQuad;
      if (column >= of.width()) continue;
      Quad result;
      UNROLL
      for (int e = 0; e < kQuad; e++) result.of[e] = zero ? 0 : sums[p][i][e] * factor;
      store_vector(y + (i64)row(i) * of.width() + column, result);
    }
  }

  // Meanwhile the next piece is on its way: the first one of the values while scores become weights.
  DEVICE void run_tile(int first, bool last) {
    UNROLL
    for (int i = 0; i < kEach; i++)
      UNROLL
      for (int j = 0; j < kKeys; j++) scores[i][j] = 0;
    UNROLL
    for (int p = 0; p < kPieces; p++) {
      await_tile();
      score(p);
      __syncthreads();
      p + 1 < kPieces ? fetch(of.k, first, p + 1) : fetch(of.v, first, 0);
    }
    mask_scores(first);
    UNROLL
    for (int i = 0; i < kEach; i++) weigh(i);
    UNROLL
    for (int p = 0; p < kPieces; p++) {
      await_tile();
      add_values(sums[p]);
      __syncthreads();
      if (p + 1 < kPieces)
        fetch(of.v, first, p + 1);
      else if (!last)
        fetch(of.k, first + KEYS, 0);
    }
  }

  DEVICE void run(f32* y) {
    UNROLL
    for (int i = 0; i < kEach; i++) highest[i] = Ends<f32>::least();
    memory.queries.load(of.q, block_row, 0, of.rows(), of.width());
    fetch(of.k, 0, 0);
    const int seen = of.seen(block_row + kRows);
    NO_UNROLL
    for (int first = 0; first < seen; first += KEYS) run_tile(first, first + KEYS >= seen);
    UNROLL
    for (int i = 0; i < kEach; i++) store(i, y);
  }
};

template <int WIDTH, int KEYS>
DEVICE void attention(const KeelArgs& args) {
  typedef Attention<WIDTH, KEYS> Part;
  alignas(16) __shared__ typename Part::Memory memory;
  each_part<f32, kRows>(args, [&](const Operands<f32>& of, int first_row, f32* y) { Part{of, memory, first_row}.run(y); });
}

BLOCK_KERNEL(attention_64_f32) { attention<64, 64>(args); }
BLOCK_KERNEL(attention_128_f32) { attention<128, 32>(args); }
