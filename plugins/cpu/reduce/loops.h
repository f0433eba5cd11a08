// loops.h: the loops of the reductions, as a table of function pointers. A loop works on
// accumulators of its own type, wider than the elements where that is needed for exactness.
//
// The order of each sum is fixed. Of a row each kReduceTile elements, of a column each kReduceDeep rows, are
// added up by themselves and then merged into the accumulator, in their order; the rows that are left over
// are merged one by one. So what begins and ends at such a border may be given in any pieces, or summed apart
// and merged afterwards.
#pragma once

#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

inline constexpr int64_t kReduceTile = 1024, kReduceDeep = 16;

struct ReduceOp {
  const char* op;
  keel_dt dtype;
  uint8_t size, acc_size;  // bytes of an element, of an accumulator
  bool columns_apart;      // else columns are merged row by row, in an order that matters
  void (*start)(void* acc, int64_t n);
  void (*row)(const void* x, int64_t n, void* acc);                 // n elements into one accumulator
  void (*lines)(const void* x, int64_t lines, int64_t n, void* y);  // each n elements: one result
  // element i of each row into accumulator i
  void (*column)(const void* x, int64_t rows, int64_t stride, int64_t n, void* acc);
  // accumulators of single tiles or blocks of rows, `stride` apart, into n accumulators
  void (*merge)(const void* apart, int64_t rows, int64_t stride, int64_t n, void* acc);
  void (*finish)(const void* acc, int64_t n, int64_t count, void* y);  // count: elements in each
};
inline constexpr int64_t kAccumulatorSize = 16;  // the widest

struct ReduceTable {
  const ReduceOp* ops;
  int n;
};
const ReduceTable& Reductions();
const ReduceOp* FindReduction(const char* op, keel_dt);  // null: there is none

// As row, but looks between pieces whether anybody still waits; the bits are the same.
void ReduceRow(const keel_call* call, const ReduceOp& op, const char* x, int64_t n, void* acc);

}  // namespace keel_cpu
