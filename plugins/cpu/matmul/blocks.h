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

  int64_t RowBytes() const { return count * bytes; }
  BlockRows From(int64_t row) const {
    return {w + row * RowBytes(), scale + row * count, zero == nullptr ? nullptr : zero + row * count, count,
            bytes};
  }
};

struct BlockKernel {
  int64_t bits, rows, columns;  // multiply takes up to so many rows of x, and of weights
  int64_t most_rows;            // of x, for more of them the op's body is faster
  // The bytes of a row of x as multiply reads it, for weights of `count` blocks of `block` bytes: a multiple
  // of 4.
  int64_t (*row_bytes)(int64_t count, int64_t block);
  // Writes k elements of x so, for these weights.
  void (*spread)(const float* x, int64_t k, const BlockRows& w, char* to);
  // y[r * step + c] = the product of row r of x, the rows `row` bytes apart, and row c of the weights.
  void (*multiply)(const char* x, int64_t row, int64_t rows, const BlockRows& w, int64_t columns, float* y,
                   int64_t step);
};

inline constexpr int64_t kFewRows = 16;  // at 4096 x 4096 and one thread, both ways take about the same time

// The kernels for 2, 4 and 8 bits.
const BlockKernel& BlockLoops(int64_t bits);
// With x rounded to 8 bits, for blocks of kLeastBlock bytes or a larger power of 2.
const BlockKernel& RoundedLoops(int64_t bits);
inline constexpr int64_t kLeastBlock = 4;

// Fetches weights of the tile after next, or their scales, from memory. `next`: as far into the next tile as
// the caller is into its own, so that the fetches of all rows follow each other in memory: hardware
// prefetchers join in, which do not with a row each (Zen 4: 24 GB/s, and 13). Into L2: two tiles of long rows
// would displace each other and x from L1 (rows of 5504 bytes: 14 GB/s).
template <int64_t kBytes>
[[gnu::always_inline]] inline void FetchAhead(const void* next) {
  constexpr int64_t kLine = 64, kFarther = 8 << 10;  // bytes; a short tile is multiplied before memory answers
#pragma GCC unroll 4
  for (int64_t i = 0; i < kBytes; i += kLine)
    __builtin_prefetch(static_cast<const char*>(next) + kFarther + i, 0, 2);
}

// The place of the kernels for so many bits in a table.
constexpr int64_t PlaceOf(int64_t bits) { return bits == 2 ? 0 : bits == 4 ? 1 : 2; }

}  // namespace keel_cpu
