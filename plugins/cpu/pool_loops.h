// pool_loops.h: the inner loop of max pooling on images whose channels lie side by side.
#pragma once

#include <cstdint>

namespace keel_cpu {

// For pixel p and channel c: y[p * y_step + c] = the greatest of x[p * x_step + at[i] + c] over i, a NaN
// before all.
using MaxOfCells = void (*)(const float* x, const int64_t* at, int64_t cells, int64_t channels,
                            int64_t pixels, int64_t x_step, float* y, int64_t y_step);
MaxOfCells MaxOfCellsLoop();

}  // namespace keel_cpu
