// window.h: the sliding window that convolutions and pools share: strides, dilations and padding,
// with ONNX's automatic modes worked out, for symbolic image dims too.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

struct Window {
  Ints size, stride, dilation;
  Dims lo, hi;
  keel_dim span(size_t k) const { return dilation[k] * (size[k] - 1) + 1; }
};

// image: the dims of the image without batch and channels; size: of the window.
Window window(Call& c, const Dims& image, const Ints& size);

}  // namespace onnx_import
