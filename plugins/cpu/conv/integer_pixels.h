// integer_pixels.h: the loops of integer_pixels.cc, for AVX2.
//
// The lanes of a vector are results' places, and a weight is broadcast. So weights whose products saturate 16
// bits cost one more group each, whatever the weights of other channels are.
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
// A group whose products are added to those of group `place` (in bytes of the channel's groups).
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
};
// Null: another class of processor, which has better loops.
const PixelLoopTable* PixelLoops();

}  // namespace keel_cpu
