// loops.h: two products in one loop, for nets of one row: the row's reads its panel from the second-level
// cache or beyond and waits for it, that of eight rows of later steps waits for multiply-add.
#pragma once

#include <cstdint>

namespace keel_cpu {

inline constexpr int kRowsAhead = 8;

// One row by a panel; its sums begin with those at `start`, or with zeros.
struct RowProduct {
  const float* left;
  int64_t depth;
  const float *panel, *start;
  float* to;
};
// kRowsAhead rows, `row` elements apart, by rows of a panel. Their sums begin with those at `start`,
// `start_row` apart, or with zeros.
struct RowsProduct {
  const float* left;
  int64_t row, depth;
  const float *panel, *start;
  int64_t start_row;
  float* to;
  int64_t to_row;
};
using ProductPair = void(const RowProduct& row, const RowsProduct& rows);
ProductPair* PairLoop();  // null: this class of processor has too few registers

}  // namespace keel_cpu
