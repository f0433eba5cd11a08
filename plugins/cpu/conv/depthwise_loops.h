// depthwise_loops.h: a convolution of one channel of a plain image by one window of 3x3 or 5x5, with a stride
// of 1 or 2 along rows.
#pragma once

#include <cstdint>

namespace keel_cpu {

struct DepthwiseShape {
  int64_t height, width, out_height, out_width;
  int64_t window[2], stride[2], dil[2], lo[2];
  int64_t padded_height, pitch;  // of the copy of the image within its padding; pitch is even

  int64_t Work() const { return padded_height * pitch + 64; }  // numbers
};
// work: zeros, or work of an earlier image of the same shape.
using DepthwiseLoop = void (*)(const DepthwiseShape& s, const float* x, const float* window, float shift,
                               float* work, float* y);
struct DepthwiseLoops {
  DepthwiseLoop any;
  // For images of the result's width with padding of one cell before each row, a 3x3 window, stride and
  // dilation 1; of at most so many columns. Needs no work.
  DepthwiseLoop narrow;
  int64_t most_columns;
};
const DepthwiseLoops& DepthwiseOfChannel();

}  // namespace keel_cpu
