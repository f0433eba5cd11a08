// narrow.h: a 1x1 convolution of f32 images with channels last to 16 or 24 channels, as it ends an inverted
// residual: all results of a pixel are sums in registers.
#pragma once

#include "plugins/cpu/conv/conv.h"

namespace keel_cpu {

// Whether the loops compute it on this class of processor, and fast. The weights are in panels of
// kNarrowPanel channels (conv/images.h).
bool IsNarrow(const Conv& s);
// Operands and `panels`: see KeepImages.
void KeepNarrow(const Conv& s, const float* panels, ConvEnd end, keel_launch* launch);

}  // namespace keel_cpu
