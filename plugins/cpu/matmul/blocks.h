// blocks.h: kernels of products with weights that are quantised in blocks (matmul_blocks). blocks.cc has the
// driver.
#pragma once

#include <cstdint>

#include "plugins/cpu/parallel/fetch.h"

namespace keel_cpu {

// A row of weights: `count` blocks of `bytes` bytes, each with a scale and maybe a zero point, without one
// 2^(bits - 1).
struct BlockRow {
  int64_t count, bytes;
  bool has_zero;

  int64_t RowBytes() const { return count * bytes; }
};
struct BlockRows : BlockRow {
  const uint8_t* w;
  const float *scale, *zero;

  BlockRows From(int64_t row) const {
    return {*this, w + row * RowBytes(), scale + row * count, has_zero ? zero + row * count : nullptr};
  }
};

struct BlockKernel {
  int64_t bits, rows, columns;  // multiply takes up to so many rows of x, and of weights
  int64_t most_rows;            // of x, for more of them the op's body is faster
  // The bytes of a row of x as multiply reads it, for these weights: a multiple of 4.
  int64_t (*row_bytes)(const BlockRow& w);
  // Writes k elements of x so.
  void (*spread)(const float* x, int64_t k, const BlockRow& w, char* to);
  // y[r * step + c] = the product of row r of x, the rows `row` bytes apart, and row c of the weights.
  void (*multiply)(const char* x, int64_t row, int64_t rows, const BlockRows& w, int64_t columns, float* y,
                   int64_t step);
  // Null, or multiply reads the weights as a panel, at w.w, of panel_bytes; pack writes it.
  int64_t (*panel_bytes)(const BlockRow& w) = nullptr;
  void (*pack)(const BlockRows& w, int64_t columns, char* panel) = nullptr;
};

inline constexpr int64_t kFewRows = 16;  // at 4096 x 4096 and one thread, both ways take about the same time

// The kernels for 2, 4 and 8 bits.
const BlockKernel& BlockLoops(int64_t bits);
// For blocks of kLeastBlock bytes or a larger power of 2: null if BlockLoops is faster; and with x rounded to
// 8 bits.
const BlockKernel* LaneLoops(int64_t bits);
const BlockKernel& RoundedLoops(int64_t bits);
inline constexpr int64_t kLeastBlock = 4;

// Prefetches weights, or their scales, of kFarther behind `next` into L2. `next`: as far into the next tile
// as the caller is in its own, so that the prefetches of all rows are one run of memory, which hardware
// prefetchers extend; with a run for each row they do not (Zen 4: 24 and 13 GB/s). kFarther: a short tile is
// multiplied before memory answers. In L1 two tiles of long rows would evict each other and x (rows of 5504
// bytes: 14 GB/s).
[[gnu::always_inline]] inline void FetchAhead(const void* next, int64_t bytes = 1) {
  constexpr int64_t kFarther = 8 << 10;
#pragma GCC unroll 4
  for (int64_t i = 0; i < bytes; i += kLine)
    __builtin_prefetch(static_cast<const char*>(next) + kFarther + i, 0, kIntoL2);
}

// The place of the kernels for so many bits in a table.
constexpr int64_t PlaceOf(int64_t bits) { return bits == 2 ? 0 : bits == 4 ? 1 : 2; }

}  // namespace keel_cpu
