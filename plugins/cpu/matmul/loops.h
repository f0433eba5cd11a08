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
struct MatmulOp {
  keel_dt dtype;
  uint8_t size;         // bytes per element of the operands
  uint8_t packed_size;  // bytes per element of a panel
  bool as_is;           // packing does not convert, so full panels can be read from b directly
  int64_t panel;        // columns
  // Packs panel p of b, a matrix [k, n].
  void (*pack)(Matrix b, int64_t k, int64_t n, int64_t p, void* panel);
  // Converts n elements of a to those of a panel, which `multiply` takes; null: they are the same.
  void (*widen)(const void* a, int64_t n, void* to);
  // c[m, columns of panel p] = a[m, k] * panel, whose rows are `step` elements apart; c is row-major [m, n].
  void (*multiply)(Matrix a, const void* panel, int64_t step, int64_t m, int64_t n, int64_t k, int64_t p,
                   void* c);
  // The same for a few rows of a and `columns` columns of b, which is read in place, row by row: panels of b
  // touch a page for each of its rows. work: (m + kStreamRows) * columns elements of a panel.
  void (*stream)(Matrix a, const void* b, int64_t step, int64_t m, int64_t columns, int64_t n, int64_t k,
                 void* work, void* c);
};
inline constexpr int64_t kStreamRows = 8;
struct MatmulTable {
  const MatmulOp* dtypes;
  int n;
};
const MatmulTable& MatmulLoops();

}  // namespace keel_cpu
