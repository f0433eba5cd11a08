// strips.h: a convolution and the depthwise 3x3 convolution of its result: the image between the two exists
// only as a few rows of some channels, which stay in the first-level cache. The first has a 1x1 window and an
// image with channels last, or a plain image of few channels, as the first layer of a network. The result has
// channels last.
#pragma once

#include "plugins/cpu/conv/conv.h"

namespace keel_cpu {

// A convolution of two in a row, and its constants.
struct StripConv {
  Conv s;
  const float* weights;  // `first`: panels as PackImagePanels writes them; `second`: of PackStripWindows
  ConvEnd end;           // without a summand
};

// Whether `first` reads a plain image; else channels last.
bool ReadsPlain(const Conv& first);

// Whether the loops compute these two on this class of processor, and fast.
bool FitsStrips(const Conv& first, const Conv& second);

// Windows of 3x3 of each channel, as the loops read them.
void PackStripWindows(const Conv& second, const float* w, float* to);

// The launch's operand is the image that `first` sees, its result that of `second`.
void KeepStrips(StripConv first, StripConv second, keel_launch* launch);

}  // namespace keel_cpu
