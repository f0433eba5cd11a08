// numbers.h: constants as numbers: read, tested, computed with in double and written back.
#pragma once
#include <optional>

#include "plugins/passes/edit/edit.h"

namespace keel_passes {

// The one number that all elements of a constant are, bit by bit; nothing if they differ, if it is no
// constant, or if an integer is no double. A bool is 0 or 1.
std::optional<double> uniform(const Edit& e, keel_value v);
// The same, and it is this number; zeros differ by their sign.
bool is_all(const Edit& e, keel_value v, double number);
// Equal but for the rounding to the dtype, which a power and a quotient may repeat.
bool near(double a, double b, keel_dt dtype);

// Elements of a constant of f32 or f64; nothing for others.
std::optional<std::vector<double>> doubles(const Edit& e, keel_value v);
// Rounds once to f32 or f64. Nothing where a number is too large or, not being 0, too small to keep its
// precision: then the caller leaves the graph as it is.
std::optional<keel_value> store(Edit& e, keel_dt dtype, const Dims& dims, const std::vector<double>& v);
// A scalar of a float dtype; f16 and bf16 must hold the number as it is, and it must be normal.
keel_value scalar(Edit& e, keel_dt dtype, double number);

}  // namespace keel_passes
