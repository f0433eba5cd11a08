// integer.h: conv_integer as this plugin serves it.
#pragma once

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/conv/integer_loops.h"
#include "plugins/cpu/matmul/int8.h"

namespace keel_cpu {

// False: the op's body serves the node. The weights and their zero points are constant: one, or one per
// output channel. x has one zero point, which may be known in each call only.
bool ServesIntegers(const Node& node);

struct IntegerWeights {
  int32_t x_zero = 0;
  bool x_zero_varies = false;
  std::vector<int16_t> w;  // less their zero points
};
IntegerWeights ReadIntegerWeights(const Node& node);
// Whether oneDNN's sums of these weights are exact here.
bool ServesOneDnn(const IntegerWeights& weights);

// integer_images.cc: the convolution on channels-last images, up to the quantisation of its result.
uint64_t IntegerPanelBytes(const Conv& s);
void PackIntegerPanels(const Conv& s, const std::vector<int16_t>& w, char* to);
// `panels`, packed by the function above, outlives the launch. Operand 1 is the zero point of x, if it
// varies.
void KeepIntegerImages(const Conv& s, const IntegerWeights& weights, bool x_signed, const void* panels,
                       Int8Result result, keel_launch* launch);

// integer_pixels.cc: the same with packed weights of bytes. No bytes: the processor has better loops, or too
// many pairs of weights do not fit.
uint64_t PixelPanelBytes(const Conv& s, const std::vector<int16_t>& w);
void PackPixelPanels(const Conv& s, const std::vector<int16_t>& w, char* to);
void KeepIntegerPixels(const Conv& s, const IntegerWeights& weights, bool x_signed, const void* panels,
                       Int8Result result, keel_launch* launch);

// integer_depthwise.cc: the same of one channel per group, with results of 8 bits and a constant zero point.
bool ServesIntegerDepthwise(const Conv& s, const IntegerWeights& weights, const Int8Result& result);
void KeepIntegerDepthwise(const Conv& s, const IntegerWeights& weights, bool x_signed, Int8Result result,
                          keel_launch* launch);

}  // namespace keel_cpu
