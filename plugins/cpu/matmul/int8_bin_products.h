// int8_bin_products.h: a panel of rows times packed weights, up to the quantisation of the results.
#pragma once

#include <algorithm>

#include "plugins/cpu/matmul/int8_bins.h"
#include "plugins/cpu/matmul/shape.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {

// Rows in panels, which differ by at most one vector.
struct BinRows {
  int64_t rows = 0;
  struct Part {
    int64_t row, vectors, rows;
  };

  int64_t Vectors() const { return (rows + kPlaces - 1) / kPlaces; }
  int64_t Panels() const { return (Vectors() + kMostVectors - 1) / kMostVectors; }
  Part At(int64_t panel) const {
    const int64_t first = Vectors() * panel / Panels(), vectors = Vectors() * (panel + 1) / Panels() - first,
                  row = first * kPlaces;
    return {row, vectors, std::min(vectors * kPlaces, rows - row)};
  }
};
// Into how many parts `quads` are cut, so that each thread has several of so many units.
int64_t PartsOf(int64_t units, int64_t quads);

// Signed cells are moved into the range of unsigned ones: what is xored with a group, and the zero point
// then.
inline uint32_t FlipOf(bool is_signed) { return is_signed ? 0x80808080U : 0; }
inline int32_t MovedZero(int32_t zero, bool is_signed) { return zero + (is_signed ? 128 : 0); }

// Room for the missing channels of the last quad.
void PadToQuad(Int8Result* result);

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
// the result (PadToQuad), the first of them. y: its column in the first row; rows are `step` elements apart.
void MultiplyBins(const BinPanel& panel, const BinShape& s, const char* weights, int64_t begin, int64_t end,
                  int64_t channels, const Int8Result& result, int64_t channel, char* y, int64_t step,
                  const BinScratch& own);

// Prepares a matmul_integer of several rows and a constant b, which takes `result` and returns true, or
// returns false: other products, other classes of processor, too many groups that exceed a bin.
bool KeepBins(const Node& node, const MatmulShape& s, Int8Result* result, keel_launch* launch);

}  // namespace keel_cpu
