// loops.h: the loops of the reductions, as a table of function pointers. Each uses its own accumulator type,
// wider than the elements if exactness requires it.
//
// The order of each sum is fixed. Tiles of kReduceTile elements of a row, and blocks of kReduceDeep rows of a
// column, are summed separately and then merged into the accumulator in order; remaining rows are merged one
// by one. So an operand may be split at these boundaries, or its tiles summed separately and merged
// afterwards, with the same bits.
#pragma once

#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

inline constexpr int64_t kReduceTile = 1024, kReduceDeep = 16;
inline constexpr int64_t kReduceColumns = 2048;  // most columns at once

struct ReduceOp {
  const char* op;
  keel_dt dtype;
  uint8_t size, acc_size;  // bytes per element and per accumulator
  bool splits_columns;  // columns can be summed in separate blocks; else rows are merged one by one, in order
  void (*start)(void* acc, int64_t n);
  void (*row)(const void* x, int64_t n, void* acc);                 // n elements into one accumulator
  void (*lines)(const void* x, int64_t lines, int64_t n, void* y);  // one result for each n elements
  // element i of each row into accumulator i
  void (*column)(const void* x, int64_t rows, int64_t stride, int64_t n, void* acc);
  // separately summed tiles or blocks of rows, `stride` apart, into n accumulators
  void (*merge)(const void* apart, int64_t rows, int64_t stride, int64_t n, void* acc);
  void (*finish)(const void* acc, int64_t n, int64_t count, void* y);  // count: elements per accumulator
};
inline constexpr int64_t kAccumulatorSize = 16;  // of the widest type

struct ReduceTable {
  const ReduceOp* ops;
  int n;
};
const ReduceTable& Reductions();
const ReduceOp* FindReduction(const char* op, keel_dt);  // null: none

}  // namespace keel_cpu
