// loops.h: the inner loops of max pooling: of images whose channels lie side by side, and of which cell
// it was.
#pragma once

#include <cstdint>

namespace keel_cpu {

// For pixel p and channel c: y[p * y_step + c] = the greatest of x[p * x_step + at[i] + c] over i, a NaN
// before all.
using MaxOfCells = void (*)(const float* x, const int64_t* at, int64_t cells, int64_t channels,
                            int64_t pixels, int64_t x_step, float* y, int64_t y_step);
MaxOfCells MaxOfCellsLoop();

// What that sends back to the first greatest cell (the first NaN before all); the other cells get 0. adds: to
// what is there, else cells are seen once; positive: only to a cell that is greater than 0.
struct Unpooled {
  bool adds, positive;
};
using UnpoolCells = void (*)(const float* x, const int64_t* at, int64_t cells, int64_t channels,
                             int64_t pixels, int64_t x_step, const float* dy, int64_t y_step, float* dx,
                             Unpooled how);
UnpoolCells UnpoolCellsLoop();
// y[i] = where[i] > 0 ? x[i] : 0; y may be x.
using WherePositive = void (*)(const float* where, const float* x, int64_t n, float* y);
WherePositive WherePositiveLoop();

// For place o of n: y[o] = the o * step + at[i] that has the greatest of x, the first of equals, the first
// NaN before all.
using IndexOfCells = void (*)(const float* x, const int64_t* at, int64_t cells, int64_t step, int64_t n,
                              int64_t* y);
IndexOfCells IndexOfCellsLoop();

}  // namespace keel_cpu
