// elementwise.cc: arithmetic, comparisons, logic and functions of single elements.
#include <cmath>
#include <limits>

#include "plugins/onnx/export/call.h"

namespace onnx_export {
namespace {

// Where a divisor of signed integers is -1, processors fail for the least integer: 1 in its place.
// minus_one: where that is so; "": never.
std::string divisor(Call& c, std::string* minus_one) {
  const keel_dt t = c.dtype();
  if (is_float(t) || is_unsigned(t)) return c.in(1);
  *minus_one = c.add("Equal", {c.in(1), c.scalar(t, -1)});
  return c.add("Where", {*minus_one, c.scalar(t, 1), c.in(1)});
}

void div(Call& c) {
  std::string minus_one;
  const std::string b = divisor(c, &minus_one);
  if (minus_one.empty()) return c.give("Div", {c.in(0), b});
  const std::string negative = c.add("Sub", {c.scalar(c.dtype(), 0), c.in(0)});
  c.give("Where", {minus_one, negative, c.add("Div", {c.in(0), b})});
}

// Mod has the sign of the divisor for integers alone; with fmod, that of the dividend. -1 and 1 leave 0.
void rem(Call& c) {
  std::string minus_one;
  c.give("Mod", {c.in(0), divisor(c, &minus_one)}, NodeAttrs().i("fmod", 1));
}

void mod(Call& c) {
  const keel_dt t = c.dtype();
  std::string minus_one;
  if (!is_float(t)) return c.give("Mod", {c.in(0), divisor(c, &minus_one)});
  const std::string zero = c.scalar(t, 0), b = c.in(1);
  const std::string r = c.add("Mod", {c.in(0), b}, NodeAttrs().i("fmod", 1));
  const std::string other = c.add("Xor", {c.add("Less", {r, zero}), c.add("Less", {b, zero})});
  const std::string whole = c.add("Equal", {r, zero});
  const std::string turned = c.add("And", {c.add("Not", {whole}), other});
  c.give("Where", {turned, c.add("Add", {r, b}), r});
}

// The constant exponent of an integer power; -1: not constant, or more than one.
int64_t constant_exponent(Call& c) {
  keel_tensor t = c.scope.type(c.in_value(1));
  if (!t.data) return -1;
  const auto width = static_cast<size_t>(dtype_bits(c.dtype())) / 8;
  uint64_t value = 0;
  if (count_of(t) != 1) return -1;
  __builtin_memcpy(&value, t.data, width);
  return value <= 64 ? static_cast<int64_t>(value) : -1;
}

// ONNX leaves open how integer powers overflow, and negative ones: only products of the base are certain.
void pow(Call& c) {
  if (is_float(c.dtype())) return c.give("Pow", {c.in(0), c.in(1)});
  const int64_t exponent = constant_exponent(c);
  if (exponent < 1) throw Refused{"an integer power whose exponent is not a constant from 1 to 64"};
  std::string power, square = c.in(0);
  for (int64_t rest = exponent; rest; rest >>= 1) {
    if (rest & 1) power = power.empty() ? square : c.add("Mul", {power, square});
    if (rest > 1) square = c.add("Mul", {square, square});
  }
  // The exponent may add dims of size 1.
  c.give("Expand", {power, c.scope.shape(c.out_dims())});
}

void not_equal(Call& c) { c.give("Not", {c.add("Equal", {c.in(0), c.in(1)})}); }

// BitShift by the width or more is undefined.
void shift(Call& c) {
  const keel_dt t = c.dtype();
  const std::string zero = c.scalar(t, 0), by = c.in(1);
  const std::string fits = c.add("Less", {by, c.scalar(t, dtype_bits(t))});
  const std::string safe = c.add("Where", {fits, by, zero});
  const std::string moved =
      c.add("BitShift", {c.in(0), safe}, NodeAttrs().s("direction", c.op == "shift_left" ? "LEFT" : "RIGHT"));
  c.give("Where", {fits, moved, zero});
}

void neg(Call& c) {
  if (is_unsigned(c.dtype())) return c.give("Sub", {c.scalar(c.dtype(), 0), c.in(0)});
  c.give("Neg", {c.in(0)});
}

// ONNX leaves the sign of NaN open.
void sign(Call& c) {
  if (!is_float(c.dtype())) return c.give("Sign", {c.in(0)});
  const std::string x = c.in(0);
  c.give("Where", {c.add("IsNaN", {x}), x, c.add("Sign", {x})});
}

void rsqrt(Call& c) { c.give("Reciprocal", {c.add("Sqrt", {c.in(0)})}); }

// With u = 1 + x rounded, log(u) * x / (u - 1) has no error from that rounding; u = 1: x.
void log1p(Call& c) {
  const keel_dt own = c.dtype(), t = dtype_bits(own) == 16 ? keel_dt{KEEL_F32} : own;
  const std::string x = t == own ? c.in(0) : c.cast(c.in(0), t), one = c.scalar(t, 1);
  const std::string u = c.add("Add", {x, one}), inf = c.scalar(t, std::numeric_limits<double>::infinity());
  const std::string part = c.add("Div", {x, c.add("Sub", {u, one})});
  const std::string log = c.add("Mul", {c.add("Log", {u}), part});
  const std::string same = c.add("Or", {c.add("Equal", {u, one}), c.add("Equal", {u, inf})});
  if (t == own) return c.give("Where", {same, x, log});
  c.give_cast(c.add("Where", {same, x, log}));
}

void is_finite(Call& c) {
  const std::string x = c.in(0);
  c.give("Not", {c.add("Or", {c.add("IsNaN", {x}), c.add("IsInf", {x})})});
}

// IsInf takes bf16 from opset 20 on, IsNaN from 13.
constexpr Row kRows[] = {{"add", plain, "Add"},
                         {"sub", plain, "Sub"},
                         {"mul", plain, "Mul"},
                         {"div", div},
                         {"mod", mod},
                         {"rem", rem},
                         {"pow", pow},
                         {"maximum", plain, "Max"},
                         {"minimum", plain, "Min"},
                         {"equal", plain, "Equal"},
                         {"not_equal", not_equal},
                         {"less", plain, "Less"},
                         {"less_equal", plain, "LessOrEqual"},
                         {"greater", plain, "Greater"},
                         {"greater_equal", plain, "GreaterOrEqual"},
                         {"logical_and", plain, "And"},
                         {"logical_or", plain, "Or"},
                         {"logical_xor", plain, "Xor"},
                         {"logical_not", plain, "Not"},
                         {"bit_and", plain, "BitwiseAnd"},
                         {"bit_or", plain, "BitwiseOr"},
                         {"bit_xor", plain, "BitwiseXor"},
                         {"bit_not", plain, "BitwiseNot"},
                         {"shift_left", shift},
                         {"shift_right", shift},
                         {"neg", neg},
                         {"abs", plain, "Abs"},
                         {"sign", sign},
                         {"sqrt", plain, "Sqrt"},
                         {"rsqrt", rsqrt},
                         {"reciprocal", plain, "Reciprocal"},
                         {"exp", plain, "Exp"},
                         {"log", plain, "Log"},
                         {"log1p", log1p},
                         {"sin", plain, "Sin"},
                         {"cos", plain, "Cos"},
                         {"tanh", plain, "Tanh"},
                         {"erf", plain, "Erf"},
                         {"floor", plain, "Floor"},
                         {"ceil", plain, "Ceil"},
                         {"round", plain, "Round"},
                         {"relu", plain, "Relu"},
                         {"is_nan", plain, "IsNaN"},
                         {"is_inf", plain, "IsInf"},
                         {"is_finite", is_finite},
                         {"select", plain, "Where"}};

}  // namespace

Rows elementwise_rows() { return kRows; }

}  // namespace onnx_export
