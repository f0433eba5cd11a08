// numbers.h: constants as numbers: reading, testing, and storing results computed in double.
#pragma once
#include <optional>

#include "plugins/passes/edit/edit.h"

namespace keel_passes {

// The number that all elements of a constant equal bit by bit; none if they differ, the value is no constant,
// or an integer is not exact in double. A bool is 0 or 1.
std::optional<double> uniform(const Edit& e, keel_value v);
// Whether all elements equal this number; zeros differ by sign.
bool is_all(const Edit& e, keel_value v, double number);
// Whether two numbers are equal up to a few roundings to the dtype, as from a power or quotient.
bool near(double a, double b, keel_dt dtype);

// Elements of an f32 or f64 constant; none for other dtypes.
std::optional<std::vector<double>> doubles(const Edit& e, keel_value v);
// A constant with one rounding to f32 or f64. None if a number overflows or becomes subnormal; the caller
// then leaves the graph unchanged.
std::optional<keel_value> store(Edit& e, keel_dt dtype, const Dims& dims, const std::vector<double>& v);
// A scalar of a float dtype; for f16 and bf16 the number must be exact and normal.
keel_value scalar(Edit& e, keel_dt dtype, double number);

}  // namespace keel_passes
