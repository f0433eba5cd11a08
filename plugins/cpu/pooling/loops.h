// loops.h: the inner loops of max pooling and of its index, for images with contiguous channels.
#pragma once

#include <cstdint>

namespace keel_cpu {

// y[p * y_step + c] = max over i of x[p * x_step + at[i] + c] for pixel p and channel c; NaN counts as the
// maximum.
using MaxOfCells = void (*)(const float* x, const int64_t* at, int64_t cells, int64_t channels,
                            int64_t pixels, int64_t x_step, float* y, int64_t y_step);
MaxOfCells MaxOfCellsLoop();

// The gradient of max pooling: dy goes to the first maximum (the first NaN, if any), the other cells get 0.
// adds: accumulate (overlapping windows); positive: only to cells greater than 0.
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

// For position o of n: y[o] = the o * step + at[i] with the maximum of x; the first of equals, the first NaN
// if any.
using IndexOfCells = void (*)(const float* x, const int64_t* at, int64_t cells, int64_t step, int64_t n,
                              int64_t* y);
IndexOfCells IndexOfCellsLoop();

}  // namespace keel_cpu
