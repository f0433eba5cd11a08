// matmul.cu: products of matrices by tiles of 16 x 16 results, with batches and an optional bias.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"

constexpr int kTile = 16;
static_assert(kTile * kTile == kThreads, "a thread computes one result of a tile");

// Operands a, b, result, bias. Numbers: rows, columns, inner, batches, strides of a (row, inner), of b (inner,
// column), 1 with bias, rank; then sizes of the batch dims, and strides of a and b there. ops/matmul.cc
template <class S>
DEVICE void matmul(const KeelArgs& args) {
  typedef Compute<S> C;
  __shared__ C left[kTile][kTile + 1], right[kTile][kTile + 1];
  const i64* n = args.numbers;
  const i64 rows = n[0], columns = n[1], inner = n[2];
  const int x = (int)(threadIdx.x % kTile), y = (int)(threadIdx.x / kTile);
  const i64 across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  for (i64 tile = blockIdx.x; tile < across * down * n[3]; tile += gridDim.x) {
    const i64 batch = tile / (across * down), row = tile / across % down * kTile + y;
    const i64 column = tile % across * kTile + x;
    i64 at[2];
    find_offsets<2>(n + 10, (int)n[9], batch, at);
    const S *a = operand<const S>(args, 0) + at[0], *b = operand<const S>(args, 1) + at[1];
    C sum = (C)0;
    for (i64 k = 0; k < inner; k += kTile) {
      left[y][x] = row < rows && k + x < inner ? Number<S>::from(a[row * n[4] + (k + x) * n[5]]) : (C)0;
      right[y][x] = column < columns && k + y < inner ? Number<S>::from(b[(k + y) * n[6] + column * n[7]]) : (C)0;
      __syncthreads();
      for (int j = 0; j < kTile; j++) sum = multiply_add(left[y][j], right[j][x], sum);
      __syncthreads();
    }
    if (row >= rows || column >= columns) continue;
    if (n[8]) sum = sum + Number<S>::from(operand<const S>(args, 3)[column]);
    operand<S>(args, 2)[(batch * rows + row) * columns + column] = Number<S>::to(sum);
  }
}

#define DTYPE(S, name) \
  BLOCK_KERNEL(matmul_##name) { matmul<S>(args); }
#define ONLY_NUMBERS
#include "dtypes.inc"
