// integer_pixels.h: the loops of integer_pixels.cc, for AVX2.
//
// The lanes of a vector are results' places, and a weight is broadcast. So weights whose products saturate 16
// bits cost one more group for their channel only.
#pragma once

#include "plugins/cpu/matmul/int8.h"

namespace keel_cpu {

inline constexpr int64_t kQuad = 4;    // output channels of a packed block of weights
inline constexpr int64_t kPlaces = 8;  // of a vector
inline constexpr int64_t kMostVectors = 2;

// A packed block of weights: this header, int8_t[groups][kQuad][4], and then for each channel its extra
// groups.
struct WeightQuad {
  int32_t sums[kQuad];    // of all weights of a channel
  int32_t extras[kQuad];  // their counts
};
// More weights of the cells at `place`, in bytes of a vector's groups.
struct ExtraWeights {
  int32_t place;
  int8_t w[4];
};

// The left operand of a block of weights: uint8_t[groups][vectors][kPlaces][4].
struct PixelPanel {
  const char* cells;
  int64_t vectors, groups;
  int32_t zero;  // of the cells
};

// One channel per group: 16 channels are a block, whose numbers are in the order of kDepthwiseOrder, so that
// packing their results restores the order of channels. The last block may overlap the one before it.
inline constexpr int64_t kDepthwiseBlock = 16;
inline constexpr int kDepthwiseOrder[] = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};
struct DepthwiseBlock {
  int32_t first;  // channel
  int32_t sums[kDepthwiseBlock];
  float scale[kDepthwiseBlock], shift[kDepthwiseBlock];
};
// Cells at the places of the window, an even count of them.
struct DepthwiseCells {
  const char* const* at;
  int64_t pairs;
  uint32_t flip;  // as below
};

struct PixelLoopTable {
  // Rows of bytes, `step` apart, into a panel with room for vectors * kPlaces rows. `flip` is xored with each
  // group. Bytes after the rows' last whole group are not read.
  void (*columns)(const char* rows, int64_t step, int64_t count, int64_t groups, int64_t vectors,
                  uint32_t flip, char* panel);
  // The opposite: uint32_t[n][vectors * kPlaces] into rows of `bytes` bytes, at most 4 * n.
  void (*rows)(const uint32_t* from, int64_t vectors, int64_t count, int64_t bytes, char* to, int64_t step);
  // The sums of a quad, int32_t[kQuad][vectors * kPlaces].
  void (*sums)(const PixelPanel& panel, const char* quad, void* to);
  // Results of 8 bits from channel `first` on: uint8_t[vectors * kPlaces][kQuad].
  void (*bytes)(const PixelPanel& panel, const char* quad, const Int8Result& result, int64_t first, void* to);
  // All channels of one result of 8 bits. sums: before the products. w: int16_t[blocks][pairs][16][2].
  void (*depthwise)(const DepthwiseCells& cells, const std::vector<DepthwiseBlock>& blocks, const int16_t* w,
                    const Int8Result& result, char* to);
};
// Null: another class of processor, which has better loops.
const PixelLoopTable* PixelLoops();

}  // namespace keel_cpu
