// blocks.h: kernels of products with weights that are quantised in blocks (matmul_blocks). blocks.cc has the
// driver.
#pragma once

#include <cstdint>

namespace keel_cpu {

// Rows of weights, each of `count` blocks of `bytes` bytes, and their scales and zero points.
struct BlockRows {
  const uint8_t* w;
  const float *scale, *zero;  // zero null: 2^(bits - 1)
  int64_t count, bytes;

  BlockRows From(int64_t row) const {
    return {w + row * count * bytes, scale + row * count, zero == nullptr ? nullptr : zero + row * count,
            count, bytes};
  }
};

struct BlockKernel {
  int64_t bits, rows, columns;  // multiply takes up to so many rows of x, and of weights
  // Distributes k elements of x, padded with zeros, over the streams that multiply reads: stream i has the
  // elements whose weights are in place i of their bytes. sums: of the elements for each of the `count`
  // blocks of `block` bytes.
  void (*spread)(const float* x, int64_t k, int64_t count, int64_t block, float* to, float* sums);
  // y[r * step + c] = the product of row r of x (8 / bits streams) and row c of the weights.
  void (*multiply)(const float* x, const float* sums, int64_t rows, const BlockRows& w, int64_t columns,
                   float* y, int64_t step);
};

// The kernels for 2, 4 and 8 bits.
const BlockKernel& BlockLoops(int64_t bits);

}  // namespace keel_cpu
