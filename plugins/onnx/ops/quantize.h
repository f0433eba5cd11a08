// quantize.h: what the operators on quantised numbers share.
#pragma once
#include <optional>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {

// The range of an integer dtype.
struct Limits {
  double least, most;
};
Limits limits(keel_dt dtype);

// A scale or zero point, operand i: a number in place of a vector with one element, else as it is.
Term spread(Call& c, size_t i);
// The same along dim `axis` of a value of this rank.
Term along(Call& c, size_t i, size_t axis, size_t rank);
// The same; none if the operand is absent.
std::optional<Term> zero_point(Call& c, size_t i);
// Result 0: y rounded to the nearest even integer, plus the zero point (operand `zero`), saturated.
void requantised(Call& c, const Term& y, size_t zero, size_t axis);
// The product of 8-bit integers less their zero points, in i32. Zero points are a number or a vector: one for
// each row of x, for each column of y.
Term integer_product(const Term& x, const Term& y, const std::optional<Term>& x_zero,
                     const std::optional<Term>& y_zero);
// The same of operands of a node; of zero points that it lacks: 0.
Term integer_product(Call& c, size_t x, size_t y, size_t x_zero, size_t y_zero);

struct DynamicRange {
  keel_value x;            // u8
  keel_value scale, zero;  // of the range of the elements and 0
};
DynamicRange quantized_dynamically(Edit& e, keel_value x);

}  // namespace onnx_import
