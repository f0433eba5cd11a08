// quantize.h: the dynamic quantisation that several operators begin with.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

struct DynamicRange {
  keel_value x;            // u8
  keel_value scale, zero;  // of the range of the elements and 0
};
DynamicRange quantized_dynamically(Edit& e, keel_value x);

}  // namespace onnx_import
