// quantize.h: what the operators on quantised numbers share.
#pragma once
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

// The range of an integer dtype.
struct Limits {
  double least, most;
};
Limits limits(keel_dt dtype);

// A scale or zero point, operand i: a number in place of a vector with one element, else as it is.
Term spread(Call& c, size_t i);
// Operand x in 32 bits without its zero point, which may be left out.
Term centred(Call& c, size_t x, size_t zero);

struct DynamicRange {
  keel_value x;            // u8
  keel_value scale, zero;  // of the range of the elements and 0
};
DynamicRange quantized_dynamically(Edit& e, keel_value x);

}  // namespace onnx_import
