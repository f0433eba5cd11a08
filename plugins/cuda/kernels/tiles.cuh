// tiles.cuh: a tile of a product of matrices by the threads of a block: 64 x 64 results, 4 x 4 for each thread, whose
// sums stay in registers. Operands pass through shared memory, 16 of the inner dim at a time.
#ifndef KEEL_PLUGINS_CUDA_TILES_CUH
#define KEEL_PLUGINS_CUDA_TILES_CUH

constexpr int kTile = 64, kDepth = 16, kAcross = 16, kEach = kTile / kAcross;
static_assert(kAcross * kAcross == kThreads, "a thread computes kEach x kEach results");

// Row and column in the tile of a thread's results: kAcross apart, so that adjacent threads store adjacent columns.
DEVICE int tile_row(int i) { return (int)threadIdx.x / kAcross + kAcross * i; }
DEVICE int tile_column(int j) { return (int)threadIdx.x % kAcross + kAcross * j; }

// Adds to sums the products for the inner dim from first to end. The operands have prepare(first), after which and a
// meeting of the threads left(row, k) and right(k, column) give an element for k from there; k is smaller than kDepth
// and may be beyond the end: then 0.
template <class C, class Operands>
DEVICE void multiply_tile(Operands& operands, i64 first, i64 end, C (&sums)[kEach][kEach]) {
  __shared__ C a[kDepth][kTile + 1], b[kDepth][kTile];
  const int thread = (int)threadIdx.x;
  for (i64 k0 = first; k0 < end; k0 += kDepth) {
    operands.prepare(k0);
    __syncthreads();
    for (int i = thread; i < kDepth * kTile; i += kThreads) {
      a[i % kDepth][i / kDepth] = operands.left(i / kDepth, i % kDepth);  // rows are adjacent in k
      b[i / kTile][i % kTile] = operands.right(i / kTile, i % kTile);
    }
    __syncthreads();
    for (int k = 0; k < kDepth; k++)
      UNROLL for (int i = 0; i < kEach; i++)
        UNROLL for (int j = 0; j < kEach; j++) sums[i][j] = multiply_add(a[k][tile_row(i)], b[k][tile_column(j)], sums[i][j]);
    __syncthreads();
  }
}

#endif
