// strip_loops.h: kernels of a 1x1 convolution and the depthwise convolution after it, for images with
// channels last, kStripLanes channels at a time (strips.h).
#pragma once

#include <cstdint>

namespace keel_cpu {

inline constexpr int64_t kStripLanes = 16;  // channels: one vector or two, a panel of weights
inline constexpr int64_t kStripTile = 7;    // results of a row of windows in registers; a row has as many

// Of kStripLanes channels: the first values of sums, and bounds of results. A NaN stays.
struct StripEnd {
  const float* bias;
  float low, high;
};
// The image rows that windows of 3x3 see; rows outside [first, stop) are outside the image.
struct StripRows {
  const float* at[3];
  int first, stop;
};
// y[pixels, lanes] = x[pixels, depth] * panel[depth, lanes].
using StripProduct = void(const float* x, int64_t depth, const float* panel, const StripEnd& end,
                          int64_t pixels, float* y);
// The same of rows of plain images: number k of pixel i is places[k][i * stride].
using StripRowProduct = void(const float* const* places, int64_t depth, const float* panel,
                             const StripEnd& end, int64_t pixels, float* y);
// A row of n results, `step` elements apart, from rows of `width` cells of kStripLanes channels; window:
// [9][lanes]; lo: cells of padding before a row, 0 or 1.
using StripWindows = void(const StripRows& rows, int64_t width, int64_t lo, const float* window,
                          const StripEnd& end, int64_t n, float* y, int64_t step);
struct StripLoops {
  int64_t block;  // pixels whose sums are in registers
  StripProduct* product;
  StripRowProduct* row_product[2];  // by stride - 1
  StripWindows* windows[2];         // by stride - 1
};
const StripLoops* StripLoopsHere();  // null: not for this class of processor

}  // namespace keel_cpu
