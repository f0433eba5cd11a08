// hand.h: the handwritten loops of map.cc and reduced.cc. hand.cc is compiled for the measuring machine
// (-march=native).
#pragma once
#include <cstdint>

namespace map_bench {

void NineOps(const float* x, const float* w, const float* b, float* y, int64_t n);

// Reductions of rows x columns, in the summation order of plugins/cpu/reduce/loops.h.
void MeanOfSquares(const float* x, const float* y, float* out, int64_t rows, int64_t columns);
void RowSums(const float* x, const float* y, float* out, int64_t rows, int64_t columns);
void ColumnSums(const float* x, const float* y, float* out, int64_t rows, int64_t columns);
void MaxOfAbs(const float* x, const float* y, float* out, int64_t rows, int64_t columns);

}  // namespace map_bench
