// int8_bin_products.h: a panel of rows times packed weights, up to the quantisation of the results.
#pragma once

#include "plugins/cpu/matmul/int8_bins.h"
#include "plugins/cpu/matmul/shape.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {

// A panel that BinLoopTable::columns filled.
struct BinPanel {
  const char* cells;
  int64_t vectors, rows;
  int32_t zero;  // of the cells
};

// The memory that a thread needs.
struct BinScratch {
  Bytes panel, sums, made, turned;
  BinScratch(int64_t depth, const Int8Result& result);
};

// Multiplies a panel by the quads [begin, end), at most `channels` channels, of packed weights. `channel`: of
// the result, the first of them. y: its column in the first row; rows are `step` elements apart. result.scale
// and result.shift have kQuad more numbers than there are channels.
void MultiplyBins(const BinPanel& panel, const BinShape& s, const char* weights, int64_t begin, int64_t end,
                  int64_t channels, const Int8Result& result, int64_t channel, char* y, int64_t step,
                  const BinScratch& own);

// Prepares a matmul_integer of several rows and a constant b, which takes `result` and returns true, or
// returns false: other products, other classes of processor, too many groups that exceed a bin.
bool KeepBins(const Node& node, const MatmulShape& s, Int8Result* result, keel_launch* launch);

}  // namespace keel_cpu
