// loops.h: the inner loops of pooling, of the index of a maximum, and of the gradient.
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

// Pooling of images with two dims, in two steps. First the image rows that a row of results sees become one,
// within its padding; the rows so made follow each other, `pitch` cells apart. Then result o of all of them
// joins cells o * step, o * step + dil ...; results between two rows are dropped.
struct PoolImage {
  int64_t height, width, window, stride, dil, lo;        // of the first step: along columns
  int64_t cells, step, cell_dil, cell_lo, n;             // of the second one; n: results of a row
  int64_t pitch;                                         // a multiple of step
  static constexpr int64_t kRoom = 8192, kSlack = 1024;  // cells of made rows; beyond them
  static constexpr int64_t kMostRows = 64;               // of a window
};
// Rows [begin, end) of results; work has room for made rows and their results.
using PoolRowsLoop = void (*)(const PoolImage& p, const float* x, int64_t begin, int64_t end, float* work,
                              float* y);
struct PoolLoops {
  PoolRowsLoop max, sum;
  void (*divide)(float* y, const float* by, int64_t n);
  void (*multiply)(float* y, const float* by, int64_t n);
};
const PoolLoops& PoolRows();

}  // namespace keel_cpu
