// integer_depthwise_loops.h: the loop of integer_depthwise.cc, for AVX2.
#pragma once

#include "plugins/cpu/matmul/int8.h"

namespace keel_cpu {

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
  bool is_signed;
};

// All channels of one result of 8 bits. w: int16_t[blocks][pairs][16][2].
using DepthwiseLoop = void (*)(const DepthwiseCells& cells, const std::vector<DepthwiseBlock>& blocks,
                               const int16_t* w, const Int8Result& result, char* to);
// Null: another class of processor.
DepthwiseLoop DepthwiseOfBytes();

}  // namespace keel_cpu
