// reduce_loops.h: the loops of the reductions, as a table of function pointers. A loop works on
// accumulators of its own type, wider than the elements where that is needed for exactness.
#pragma once

#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

struct ReduceOp {
  const char* op;
  keel_dt dtype;
  uint8_t size;  // bytes of an element
  void (*start)(void* acc, int64_t n);
  void (*row)(const void* x, int64_t n, void* acc);                 // n elements into one accumulator
  void (*lines)(const void* x, int64_t lines, int64_t n, void* y);  // each n elements: one result
  // element i of each row into accumulator i
  void (*column)(const void* x, int64_t rows, int64_t stride, int64_t n, void* acc);
  void (*finish)(const void* acc, int64_t n, int64_t count, void* y);  // count: elements in each
};
inline constexpr int64_t kAccumulatorSize = 16;  // bytes, the widest

struct ReduceTable {
  const ReduceOp* ops;
  int n;
};
const ReduceTable& Reductions();
const ReduceOp* FindReduction(const char* op, keel_dt);  // null: there is none

// As row, but looks between pieces whether anybody still waits; the bits are the same.
void ReduceRow(const keel_call* call, const ReduceOp& op, const char* x, int64_t n, void* acc);

}  // namespace keel_cpu
