// loops.h: matrix products of all dtypes, for sizes or dtypes that oneDNN does not serve well. The second
// operand is first packed into panels of `panel` columns, k rows each, padded with zeros.
#pragma once

#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

struct Matrix {  // element (i, j) at data + (i * row + j * column) elements
  const void* data;
  int64_t row, column;
};
// Memory to fetch into the second-level cache meanwhile; the processor fetches too late by itself.
struct Next {
  const void* from;
  int64_t bytes;
  // `bytes` of each of so many rows, `step` bytes apart. Sums of fewer products than MatmulOp::long_sum have
  // no time to fetch distant rows one by one: for them `rows` is k.
  int64_t rows = 1, step = 0;
};
// The first values of sums, a panel's columns for each row of a, `row` elements apart; no data: zeros.
struct Start {
  const void* data = nullptr;
  int64_t row = 0;
};
// The columns of a panel, k rows `step` elements apart, and the memory that is read next. `copy`, if given:
// where the first rows of a pack the panel, of at most `part` rows, as they read it.
struct Panel {
  const void* data;
  int64_t step;
  Next next;
  Start start = {};
  void* copy = nullptr;
};
inline constexpr int64_t kWholeSum = INT64_MAX;
using InPlace = void(Matrix a, const void* b, int64_t step, int64_t m, int64_t columns, int64_t n, int64_t k,
                     void* work, void* c);
struct MatmulOp {
  keel_dt dtype;
  uint8_t size;         // bytes per element of the operands
  uint8_t left_size;    // bytes per element of a, as `multiply` takes it
  uint8_t packed_size;  // bytes per element of a panel
  bool as_is;           // packing does not convert, so full panels can be read from b directly
  int64_t panel;        // columns
  int64_t block;        // rows whose sums with a panel's columns are in registers
  int64_t group;        // rows of a panel are padded to a multiple
  int64_t part;         // sums of more products are added in parts of so many, or kWholeSum
  int64_t long_sum;     // see Next; kWholeSum: none is
  // Packs panel p of b, a matrix [k, n].
  void (*pack)(Matrix b, int64_t k, int64_t n, int64_t p, void* panel);
  // Converts n elements of a to those that `multiply` and `stream` take; null: they are the same.
  void (*widen)(const void* a, int64_t n, void* to);
  // c[m, columns of panel p] = a[m, k] * panel, or += (for sums in parts); c is row-major [m, n].
  void (*multiply)(Matrix a, const Panel& panel, int64_t m, int64_t n, int64_t k, int64_t p, bool adds,
                   void* c);
  // One row of at most `part` elements by full panels, `apart` bytes apart, one after the other or backwards,
  // whose columns of c are side by side. Null: none.
  // The sums begin with those at `start`, side by side as well, or with zeros.
  void (*multiply_row)(Matrix a, const void* panel, int64_t apart, int64_t count, int64_t k,
                       const void* start, void* c);
  // Columns of c for a few rows of a, with b read in place: row by row, since panels of b touch a page for
  // each of its rows; or, if b is transposed and rows of a are contiguous, as dot products. step: between the
  // rows of b in memory. work: m * columns elements of left_size, for `stream` alone.
  InPlace *stream, *dots;

  int64_t Panels(int64_t columns) const { return (columns + panel - 1) / panel; }
  // How much of their panels so many columns fill, in percent.
  int64_t Filled(int64_t columns) const {
    return columns == 0 ? 100 : 100 * columns / (Panels(columns) * panel);
  }
};
const MatmulOp* MatmulLoops(keel_dt dtype);  // null: none
// Products of bf16 by AVX-512's instruction for pairs along k, whose sums are f32: as many multiply-adds as
// f32 has per instruction, times two. a is not transposed. Null: not for this machine or class of processor.
const MatmulOp* Bf16PairLoops();

}  // namespace keel_cpu
