// loops.h: two products in one loop, for nets of one row: the row's reads its panel from the second-level
// cache or beyond and waits for it, that of the rows of later steps waits for multiply-add.
#pragma once

#include <cstdint>

namespace keel_cpu {

// One row by a panel; its sums begin with those at `start`, or with zeros.
struct RowProduct {
  const float* left;
  int64_t depth;
  const float *panel, *start;
  float* to;
};
// PairLoop::rows rows, `row` elements apart, by rows of a panel. Their sums begin with those at `start`,
// `start_row` apart, or with zeros.
struct RowsProduct {
  const float* left;
  int64_t row, depth;
  const float *panel, *start;
  int64_t start_row;
  float* to;
  int64_t to_row;
};
struct PairLoop {
  int64_t rows;
  void (*run)(const RowProduct& row, const RowsProduct& rows);  // null: too few registers
};
const PairLoop& Pairs();

}  // namespace keel_cpu
