// integer.h: conv_integer as this plugin serves it.
#pragma once

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/conv/integer_loops.h"
#include "plugins/cpu/matmul/int8.h"

namespace keel_cpu {

// False: the op's body serves the node. Weights and zero points are constant: one of x, and one of the
// weights or one per output channel.
bool ServesIntegers(const Node& node);

struct IntegerWeights {
  int32_t x_zero = 0;
  std::vector<int16_t> w;  // less their zero points
};
IntegerWeights ReadIntegerWeights(const Node& node);
// Whether oneDNN's sums of these weights are exact here.
bool ServesOneDnn(const IntegerWeights& weights);

// integer_images.cc: the convolution on channels-last images, up to the quantisation of its result.
uint64_t IntegerPanelBytes(const Conv& s);
void PackIntegerPanels(const Conv& s, const std::vector<int16_t>& w, char* to);
// `panels`, packed by the function above, outlives the launch.
void KeepIntegerImages(const Conv& s, int32_t x_zero, bool x_signed, const void* panels, Int8Result result,
                       keel_launch* launch);

// integer_pixels.cc: the same with packed weights of bytes. No bytes: the processor has better loops, or too
// many pairs of weights do not fit.
uint64_t PixelPanelBytes(const Conv& s, const std::vector<int16_t>& w);
void PackPixelPanels(const Conv& s, const std::vector<int16_t>& w, char* to);
void KeepIntegerPixels(const Conv& s, int32_t x_zero, bool x_signed, const void* panels, Int8Result result,
                       keel_launch* launch);

// integer_depthwise.cc: the same of one channel per group, with results of 8 bits.
bool ServesIntegerDepthwise(const Conv& s, const Int8Result& result);
void KeepIntegerDepthwise(const Conv& s, const IntegerWeights& weights, bool x_signed, Int8Result result,
                          keel_launch* launch);

}  // namespace keel_cpu
