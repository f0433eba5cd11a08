// depthwise_loops.h: a convolution of one channel of a plain image by one window of 3x3 or 5x5, with a stride
// of 1 or 2 along rows.
#pragma once

#include <cstdint>

namespace keel_cpu {

struct DepthwiseShape {
  int64_t height, width, out_height, out_width;
  int64_t window[2], stride[2], dil[2], lo[2];
  int64_t padded_height, pitch;  // of the copy of the image within its padding

  int64_t Work() const { return padded_height * pitch + 64; }  // numbers
};
// work: zeros, or work of an earlier image.
using DepthwiseLoop = void (*)(const DepthwiseShape& s, const float* x, const float* window, float shift,
                               float* work, float* y);
DepthwiseLoop DepthwiseOfChannel();

}  // namespace keel_cpu
