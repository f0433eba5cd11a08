// tiles.cuh: a tile of a product of matrices by the threads of a block: 16 x 16 results, or 64 x 64, which are EACH x EACH for each
// thread, whose sums stay in registers. Operands pass through shared memory, 16 of the inner dim at a time; meanwhile the next
// ones are loaded.
#ifndef KEEL_PLUGINS_CUDA_TILES_CUH
#define KEEL_PLUGINS_CUDA_TILES_CUH

constexpr int kDepth = 16, kAcross = 16;
static_assert(kAcross * kAcross == kThreads, "a thread computes EACH x EACH results");

// Row and column in the tile of a thread's results.
template <int EACH>
DEVICE int tile_row(int i) {
  return (int)threadIdx.x / kAcross * EACH + i;
}
template <int EACH>
DEVICE int tile_column(int j) {
  return (int)threadIdx.x % kAcross * EACH + j;
}

// A thread's elements of the operands for kDepth of the inner dim. Adjacent threads read elements that are adjacent in memory.
template <class C, int EACH, class Operands>
struct TileLoads {
  static constexpr int kTile = kAcross * EACH, kPadded = kTile + 4;  // rows of shared memory are whole words of 16 bytes
  C left[EACH], right[EACH];

  static DEVICE int place(int i, bool along_inner) {  // k * kPadded + row or column
    const int at = (int)threadIdx.x + i * kThreads;
    return along_inner ? at % kDepth * kPadded + at / kDepth : at / kTile * kPadded + at % kTile;
  }
  DEVICE void load(const Operands& operands) {
    UNROLL for (int i = 0; i < EACH; i++) {
      const int a = place(i, operands.left_along_inner()), b = place(i, operands.right_along_inner());
      left[i] = operands.left(a % kPadded, a / kPadded);
      right[i] = operands.right(b / kPadded, b % kPadded);
    }
  }
  DEVICE void store(const Operands& operands, C* a, C* b) const {
    UNROLL for (int i = 0; i < EACH; i++) {
      a[place(i, operands.left_along_inner())] = left[i];
      b[place(i, operands.right_along_inner())] = right[i];
    }
  }
};

// Adds to sums the products for the inner dim from first to end. The operands have prepare(first), after which and a
// meeting of the threads left(row, k) and right(k, column) give an element for k from there; k is smaller than kDepth
// and may be beyond the end: then 0. left_along_inner(): elements of a row are adjacent in memory, rather than rows.
template <class C, int EACH, class Operands>
DEVICE void multiply_tile(Operands& operands, i64 first, i64 end, C (&sums)[EACH][EACH]) {
  typedef TileLoads<C, EACH, Operands> Loads;
  alignas(16) __shared__ C a[kDepth * Loads::kPadded], b[kDepth * Loads::kPadded];
  Loads next;
  operands.prepare(first);
  __syncthreads();
  next.load(operands);
  __syncthreads();
  for (i64 k0 = first; k0 < end; k0 += kDepth) {
    next.store(operands, a, b);
    operands.prepare(k0 + kDepth);
    __syncthreads();
    next.load(operands);
    UNROLL_BY(2) for (int k = 0; k < kDepth; k++)
      UNROLL for (int i = 0; i < EACH; i++)
        UNROLL for (int j = 0; j < EACH; j++)
          sums[i][j] = multiply_add(a[k * Loads::kPadded + tile_row<EACH>(i)], b[k * Loads::kPadded + tile_column<EACH>(j)], sums[i][j]);
    __syncthreads();
  }
}

#endif
