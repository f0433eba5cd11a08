// window.h: the sliding window of convolutions and pools: strides, dilations and padding, with ONNX's
// automatic modes resolved, also for symbolic image dims.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

struct Window {
  Ints size, stride, dilation;
  Dims lo, hi;
  keel_dim span(size_t k) const { return dilation[k] * (size[k] - 1) + 1; }
};

// image: the image dims, without batch and channels; size: of the window.
Window window(Call& c, const Dims& image, const Ints& size);

}  // namespace onnx_import
