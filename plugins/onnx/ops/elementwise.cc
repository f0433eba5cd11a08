// elementwise.cc: arithmetic, comparisons, logic and casts, with broadcasting.
#include <cmath>

#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/strings.h"
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

void mean(Call& c) {
  if (c.n_in() < 2) return left_fold<"add">(c);
  keel_value sum = c.in(0);
  for (size_t i = 1; i < c.n_in(); i++) sum = c.e.op("add", {sum, c.in(i)});
  c.done("div", {sum, c.e.scalar(c.e.dtype(sum), static_cast<double>(c.n_in()))});
}

// The result has the base's dtype; an integer base with a float exponent is computed in floats.
void pow(Call& c) {
  const keel_dt base = c.dtype(0), exponent = c.dtype(1);
  if (is_float(base) || !is_float(exponent)) return c.done("pow", {c.in(0), c.e.cast(c.in(1), base)});
  const keel_value y = c.e.op("pow", {c.e.cast(c.in(0), exponent), c.in(1)});
  c.done("cast", {y}, Attrs().dtype("to", base));
}

void equal(Call& c) {
  if (holds_strings(c, 0) || holds_strings(c, 1)) return equal_strings(c);
  same<"equal">(c);
}

void where(Call& c) {
  if (holds_strings(c, 0)) c.invalid("operand 0 holds strings; expected bools");
  if (holds_strings(c, 1) || holds_strings(c, 2)) return where_strings(c);
  same<"select">(c);
}

void mod(Call& c) { c.done(c.i("fmod", 0) ? "rem" : "mod", c.all()); }

void is_inf(Call& c) {
  Edit& e = c.e;
  const bool up = c.i("detect_positive", 1), down = c.i("detect_negative", 1);
  const keel_value x = c.in(0), zero = e.scalar(c.dtype(0), 0);
  if (up && down) return c.done("is_inf", {x});
  if (!up && !down) return c.done("logical_and", {e.op("is_inf", {x}), e.op("is_nan", {x})});
  c.done("logical_and", {e.op("is_inf", {x}), e.op(up ? "greater" : "less", {x, zero})});
}

// Keel shifts unsigned integers. A signed one is shifted as bits; a negative one is complemented before and
// after a right shift, which fills with the sign. Negative amounts become large unsigned ones, which shift
// out all bits.
keel_value shift_signed(Call& c, const char* op, bool right) {
  Edit& e = c.e;
  const keel_dt dtype = c.dtype(0), bits = dtype | 1;  // i32 to u32 and so on
  const keel_value x = c.in(0), amount = e.cast(c.in(1), bits);
  if (!right) return e.cast(e.op(op, {e.cast(x, bits), amount}), dtype);
  const keel_value negative = e.op("less", {x, e.scalar(dtype, 0)});
  const keel_value positive = e.op("select", {negative, e.op("bit_not", {x}), x});
  const keel_value y = e.cast(e.op(op, {e.cast(positive, bits), amount}), dtype);
  return e.op("select", {negative, e.op("bit_not", {y}), y});
}

void bit_shift(Call& c) {
  const std::string direction = c.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    c.invalid(cat("direction is '", direction, "'; expected LEFT or RIGHT"));
  const char* op = direction == "LEFT" ? "shift_left" : "shift_right";
  if (is_unsigned(c.dtype(0))) return c.done(op, c.all());
  c.set(0, shift_signed(c, op, direction == "RIGHT"));
}

// The bits of a bool are those of 0 or 1.
void bit_cast(Call& c) {
  const keel_dt from = c.dtype(0), to = c.type("to", from);
  c.done(to == KEEL_BOOL && from != to ? "cast" : "bit_cast", {c.in(0)}, Attrs().dtype("to", to));
}

// ONNX lets numbers that are too large for a packed integer wrap, also those of floats.
void cast_to_storage(Call& c, keel_dt to) {
  const keel_dt from = c.dtype(0);
  const std::string round = c.s("round_mode", "up");
  if (round != "up" && round != "down" && round != "nearest")
    c.invalid(cat("round_mode is '", round, "'; expected up, down or nearest"));
  const bool floats = is_float(from) || (keel::is_storage(from) && !keel::is_storage_integer(from));
  const keel_value x = floats && keel::is_storage_integer(to) ? c.e.cast(c.in(0), KEEL_I32) : c.in(0);
  c.done("cast", {x},
         Attrs().dtype("to", to).flag("saturate", c.i("saturate", 1) != 0).word("round", round.c_str()));
}

// A number known at import stays known, as a Range may need it.
void cast_to(Call& c, keel_dt to) {
  if (keel::is_storage(to)) return cast_to_storage(c, to);
  double number = 0;
  if ((to != KEEL_F32 && to != KEEL_F64) || !stored_number(c, 0, &number))
    return c.done("cast", {c.in(0)}, Attrs().dtype("to", to));
  c.out.at(0) = std::make_shared<Value>();
  c.out[0]->name = c.name;
  c.out[0]->data = store(to, Ints(c.dims(0).size(), 1), {number});
}
void cast(Call& c) {
  if (!c.has_attribute("to")) c.invalid("attribute 'to' is missing");
  if (c.i("to", 0) == kString) return cast_to_strings(c);
  if (holds_strings(c, 0)) return cast_from_strings(c, c.type("to", 0));
  cast_to(c, c.type("to", 0));
}
void cast_like(Call& c) { cast_to(c, c.dtype(1)); }

// Bounds are optional scalars; hi wins if lo > hi.
void clip_with(Call& c, keel_value lo, keel_value hi) {
  if (lo != KEEL_NO_VALUE && hi != KEEL_NO_VALUE) return c.done("clamp", {c.in(0), lo, hi});
  if (lo != KEEL_NO_VALUE) return c.done("maximum", {c.in(0), lo});
  if (hi != KEEL_NO_VALUE) return c.done("minimum", {c.in(0), hi});
  c.alias(0, 0);
}
keel_value as_scalar(Call& c, size_t i) {
  if (!c.has(i)) return KEEL_NO_VALUE;
  return c.rank(i) == 0 ? c.in(i) : c.e.reshape(c.in(i), {});
}
void clip(Call& c) { clip_with(c, as_scalar(c, 1), as_scalar(c, 2)); }
void clip_by_attributes(Call& c) {
  const auto bound = [&](const char* name) {
    return c.has_attribute(name) ? c.e.scalar(c.dtype(0), c.f(name, 0)) : KEEL_NO_VALUE;
  };
  clip_with(c, bound("min"), bound("max"));
}

void identity(Call& c) { c.alias(0, 0); }

// exp(x) / 2 and exp(-x) / 2 as products of roots, which overflow no earlier than the result.
Term half_exp(const Term& x) {
  const Term root = (x * 0.5).op("exp");
  return root * 0.5 * root;
}

// Below 1, where the difference of exponentials cancels, by t = tanh(x / 2). Each branch gets operands of its
// own range only, or the gradient of the other would be 0 * inf.
void sinh(Call& c) {
  const Term x(c, 0), t = (x.clamp(-1, 1) * 0.5).op("tanh");
  c.set(0, select(x.op("abs") < 1, 2 * t / (1 - t * t), half_exp(x) - half_exp(-x)).v);
}
void cosh(Call& c) {
  const Term x(c, 0);
  c.set(0, (half_exp(x) + half_exp(-x)).v);
}

// From where on log(2x) is acosh(x) and asinh(x), whose squares overflow later.
Term large(const Term& x) {
  const keel_dt dtype = x.dtype();
  return x.n(dtype == KEEL_F16 ? 100 : dtype == KEEL_F64 ? 1e9 : 1e5);
}
Term or_log(const Term& x, const Term& formula) {
  const Term from = large(x);
  return select(x > from, x.op("maximum", from).op("log") + std::log(2), formula);
}

// log1p(|x| + x^2 / (1 + sqrt(1 + x^2))) with the sign of x, accurate for small x too; with |x| as a choice,
// whose gradient at 0 is 1.
void asinh(Call& c) {
  const Term x(c, 0), below = x < 0, size = select(below, -x, x), s = size.op("minimum", large(x));
  const Term square = s * s, y = or_log(size, (s + square / (1 + (1 + square).op("sqrt"))).op("log1p"));
  c.set(0, select(below, -y, y).v);
}
void acosh(Call& c) {
  const Term x(c, 0), t = x.op("minimum", large(x)) - 1;
  c.set(0, or_log(x, (t + t.op("sqrt") * (t + 2).op("sqrt")).op("log1p")).v);
}
void atanh(Call& c) {
  const Term x(c, 0);
  c.set(0, ((x.op("log1p") - (-x).op("log1p")) * 0.5).v);
}

constexpr Rule kRules[] = {
    {"Add", 7, same<"add">},
    {"Sub", 7, same<"sub">},
    {"Mul", 7, same<"mul">},
    {"Div", 7, same<"div">},
    {"Pow", 7, pow},
    {"Mod", 10, mod, "fmod"},
    {"Sum", 1, left_fold<"add">},
    {"Max", 1, left_fold<"maximum">},
    {"Min", 1, left_fold<"minimum">},
    {"Mean", 1, mean},
    {"Equal", 7, equal, "", 0, false, false, true},
    {"Less", 7, same<"less">},
    {"Greater", 7, same<"greater">},
    {"LessOrEqual", 12, same<"less_equal">},
    {"GreaterOrEqual", 12, same<"greater_equal">},
    {"And", 7, same<"logical_and">},
    {"Or", 7, same<"logical_or">},
    {"Xor", 7, same<"logical_xor">},
    {"Not", 1, same<"logical_not">},
    {"BitwiseAnd", 18, same<"bit_and">},
    {"BitwiseOr", 18, same<"bit_or">},
    {"BitwiseXor", 18, same<"bit_xor">},
    {"BitwiseNot", 18, same<"bit_not">},
    {"BitShift", 11, bit_shift, "direction"},
    {"Neg", 1, same<"neg">},
    {"Abs", 1, same<"abs">},
    {"Sign", 9, same<"sign">},
    {"Sqrt", 1, same<"sqrt">},
    {"Reciprocal", 1, same<"reciprocal">},
    {"Exp", 1, same<"exp">},
    {"Log", 1, same<"log">},
    {"Sin", 7, same<"sin">},
    {"Cos", 7, same<"cos">},
    {"Tan", 7, same<"tan">},
    {"Asin", 7, same<"asin">},
    {"Acos", 7, same<"acos">},
    {"Atan", 7, same<"atan">},
    {"Sinh", 9, sinh},
    {"Cosh", 9, cosh},
    {"Asinh", 9, asinh},
    {"Acosh", 9, acosh},
    {"Atanh", 9, atanh},
    {"Erf", 9, same<"erf">},
    {"Floor", 1, same<"floor">},
    {"Ceil", 1, same<"ceil">},
    {"Round", 11, same<"round">},
    {"IsNaN", 9, same<"is_nan">},
    {"IsInf", 10, is_inf, "detect_negative detect_positive"},
    {"Where", 9, where, "", 0, false, false, true},
    {"Cast", 6, cast, "to saturate round_mode", 0, true, false, true},
    {"CastLike", 15, cast_like, "saturate round_mode"},
    {"BitCast", 26, bit_cast, "to"},
    {"Clip", 11, clip},
    {"Clip", 1, clip_by_attributes, "min max"},
    {"Identity", 1, identity, "", 0, true, true},
};

}  // namespace

Rules elementwise_rules() { return kRules; }

}  // namespace onnx_import
