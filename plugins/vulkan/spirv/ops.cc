// ops.cc: see ops.h.
#include "ops.h"

#include <string_view>

#include "math.h"

namespace keel_spirv {
namespace {

using keel::plugin::Dtypes;
using keel::plugin::ScalarOp;
using Make = Value (*)(const Operation&);

Value Zero(Value like) { return Like(like, 0); }
Value IsNegative(const Operation& o, Value v) { return LessThan(o.dtype, v, Zero(v)); }
Value Magnitude(const Operation& o, Value v) {
  return IsSigned(o.dtype) ? Select(IsNegative(o, v), -v, v) : v;
}
// Divisors of zero are faults; the result is then any value.
Value NonZero(const Operation& o) {
  const Value zero = o[1] == Zero(o[1]);
  o.fail(zero);
  return Select(zero, Like(o[1], 1), o[1]);
}

// Signed division on magnitudes: Vulkan leaves the remainder of negative numbers undefined.
Value Div(const Operation& o) {
  if (IsFloat(o.dtype)) return o[0] / o[1];
  const Value b = NonZero(o), q = Magnitude(o, o[0]) / Magnitude(o, b);
  return IsSigned(o.dtype) ? Select(IsNegative(o, o[0]) ^ IsNegative(o, b), -q, q) : q;
}
Value IntegerRem(const Operation& o, Value b) {
  const Value r = Magnitude(o, o[0]) % Magnitude(o, b);
  return IsSigned(o.dtype) ? Select(IsNegative(o, o[0]), -r, r) : r;
}
Value Rem(const Operation& o) { return IsFloat(o.dtype) ? Remainder(o[0], o[1]) : IntegerRem(o, NonZero(o)); }
Value Mod(const Operation& o) {
  if (!IsFloat(o.dtype)) {
    const Value b = NonZero(o), r = IntegerRem(o, b);
    if (!IsSigned(o.dtype)) return r;
    return Select((r != 0) & (IsNegative(o, r) ^ IsNegative(o, b)), r + b, r);
  }
  const Value r = Remainder(o[0], o[1]), apart = (r < 0) ^ (o[1] < 0);
  return Select(r == 0, CopySign(Zero(r), o[1]), Select(apart & (r == r), r + o[1], r));
}

Value IntegerPower(const Operation& o) {
  const Value a = o[0], b = o[1], one = Like(a, 1);
  const Value below = IsSigned(o.dtype) ? IsNegative(o, b) : a.code->True(false);
  if (IsSigned(o.dtype)) o.fail(below & (a == 0));
  const Code::State last = a.code->While(
      {one, a, Select(below, Zero(b), b)}, [](const Code::State& s) { return s[2] != 0; },
      [](const Code::State& s) -> Code::State {
        return {Select((s[2] & 1) == 1, s[0] * s[1], s[0]), s[1] * s[1], s[2] >> 1};
      });
  const Value minus = Select((b & 1) == 1, Like(a, -1), one);
  const Value inverse = Select(a == 1, one, Select(a == Like(a, -1), minus, Zero(a)));
  return Select(below, inverse, last[0]);
}
Value PowOf(const Operation& o) { return IsFloat(o.dtype) ? Pow(o[0], o[1]) : IntegerPower(o); }

// NaN wins; 0 is greater than -0.
Value Extreme(const Operation& o, bool greatest) {
  const Value a = o[0], b = o[1];
  if (!IsFloat(o.dtype)) return Select(LessThan(o.dtype, a, b) ^ a.code->True(!greatest), b, a);
  const Value x = Bits(a), y = Bits(b), zeros = FromBits(greatest ? x & y : x | y);
  const Value better = Select(greatest ? a < b : b < a, b, a);
  return Select(IsNan(a), a, Select(IsNan(b), b, Select(a == b, zeros, better)));
}
Value Maximum(const Operation& o) { return Extreme(o, true); }
Value Minimum(const Operation& o) { return Extreme(o, false); }

Value ShiftLeft(const Operation& o) {
  const Value inside = o[1] < BitsOf(o.dtype);
  return Select(inside, o[0] << Select(inside, o[1], Zero(o[1])), Zero(o[0]));
}
Value ShiftRight(const Operation& o) {
  const Value inside = o[1] < BitsOf(o.dtype);
  return Select(inside, o[0] >> Select(inside, o[1], Zero(o[1])), Zero(o[0]));
}

Value AbsOf(const Operation& o) { return IsFloat(o.dtype) ? Abs(o[0]) : Magnitude(o, o[0]); }
Value Sign(const Operation& o) {
  const Value x = o[0], up = LessThan(o.dtype, Zero(x), x);
  const Value rest = IsUnsigned(o.dtype) ? x : Select(IsNegative(o, x), Like(x, -1), x);
  return Select(up, Like(x, 1), rest);
}
Value Relu(const Operation& o) {
  const Value x = o[0];
  return Select(IsFloat(o.dtype) ? x <= 0 : IsNegative(o, x), Zero(x), x);
}
Value IsNanOf(const Operation& o) { return IsNan(o[0]); }
Value IsInf(const Operation& o) { return Bits(Abs(o[0])) == Bits(Infinite(o[0])); }
Value IsFinite(const Operation& o) { return Bits(Abs(o[0])) < Bits(Infinite(o[0])); }
Value CastOf(const Operation& o) { return Cast(o.dtype, o.result, o[0]); }
Value SelectOf(const Operation& o) { return Select(o[0], o[1], o[2]); }
Value SqrtOf(const Operation& o) { return o[0].code->Ext(kSqrt, o[0]); }
Value Rsqrt(const Operation& o) { return 1 / SqrtOf(o); }
Value Reciprocal(const Operation& o) { return 1 / o[0]; }
// Of f64 by floor: lavapipe without AVX-512 rounds halves of f64 down, and does not round above 2^24.
Value RoundEven(Value x) {
  if (!x.IsWide()) return x.code->Ext(kRoundEven, x);
  const Value floor = x.code->Ext(kFloor, x), rest = x - floor, half = floor * 0.5;
  const Value up = (rest > 0.5) | ((rest == 0.5) & (half != x.code->Ext(kFloor, half)));
  return CopySign(Select(up, floor + 1, floor), x);
}

template <Value (*F)(Value)>
Value Function(const Operation& o) {
  return F(o[0]);
}

// ---- composites

Value Logistic(Value x) {
  const Value z = Exp(-Abs(x));
  return Select(x < 0, z, Like(x, 1)) / (1 + z);
}
// x / (1 + exp(-z)) for z of the sign of x: exp(z) may be denormal where the result is not. Far below 0: -0,
// or NaN of infinity.
Value TimesLogistic(Value x, Value z) {
  const Value e = Exp(-Abs(z)), inside = (z < 0) & (z > -1000);
  const Value end = Select(x == -Infinite(x), Nan(x), -Zero(x));  // x * 0 itself is 0 on lavapipe
  const Value below = TimesExp(Select(inside, x, Zero(x)) / (1 + e), Select(inside, z, Zero(z)), Zero(x));
  return Select(z < 0, Select(inside, below, end), x / (1 + e));
}
Value Silu(const Operation& o) { return TimesLogistic(o[0], o[0]); }
Value GeluOf(const Operation& o) {
  const Value x = o[0];
  if (!o.step->attribute) return Gelu(x);
  return TimesLogistic(x, (x + x * x * x * 0.044715) * (2 * 0.7978845608028654));  // the tanh form
}
Value Softplus(const Operation& o) { return Select(o[0] <= 0, Zero(o[0]), o[0]) + Log1p(Exp(-Abs(o[0]))); }
Value LeakyRelu(const Operation& o) {
  return Select(o[0] >= 0, o[0], o[0] * Round(o.dtype, Like(o[0], o.step->attribute)));
}
Value Square(const Operation& o) { return o[0] * o[0]; }
Value Clamp(const Operation& o) {
  Operation low = o, high = o;
  high.in = {Extreme(low, true), o[2]};
  return Extreme(high, false);
}
template <bool kNormal>
Value RandomOf(const Operation& o) {
  return Random(o.result, o[0], o.index, kNormal);
}

constexpr struct {
  const char* name;
  Make make;
} kExpansions[] = {{"div", Div},
                   {"mod", Mod},
                   {"rem", Rem},
                   {"pow", PowOf},
                   {"maximum", Maximum},
                   {"minimum", Minimum},
                   {"shift_left", ShiftLeft},
                   {"shift_right", ShiftRight},
                   {"abs", AbsOf},
                   {"sign", Sign},
                   {"relu", Relu},
                   {"is_nan", IsNanOf},
                   {"is_inf", IsInf},
                   {"is_finite", IsFinite},
                   {"cast", CastOf},
                   {"select", SelectOf},
                   {"rsqrt", Rsqrt},
                   {"reciprocal", Reciprocal},
                   {"round", Function<RoundEven>},
                   {"exp", Function<Exp>},
                   {"log", Function<Log>},
                   {"log1p", Function<Log1p>},
                   {"sin", Function<Sin>},
                   {"cos", Function<Cos>},
                   {"tanh", Function<Tanh>},
                   {"erf", Function<Erf>},
                   {"sigmoid", Function<Logistic>},
                   {"silu", Silu},
                   {"softplus", Softplus},
                   {"leaky_relu", LeakyRelu},
                   {"gelu", GeluOf},
                   {"square", Square},
                   {"clamp", Clamp},
                   {"random.uniform", RandomOf<false>},
                   {"random.normal", RandomOf<true>}};

// By the opcode of the shared table; id 0: the table has none.
Value Direct(const Operation& o, const ScalarOp& row) {
  const Dtypes set = keel::plugin::dtypes_of(o.dtype);
  const auto& s = row.spirv;
  const uint16_t code = set == keel::plugin::kFloats     ? s.on_float
                        : set == keel::plugin::kSigned   ? s.on_signed
                        : set == keel::plugin::kUnsigned ? s.on_unsigned
                                                         : s.on_bool;
  Code& c = *o[0].code;
  if (code == 0)
    return s.extended && IsFloat(o.dtype) ? c.Ext(static_cast<Extended>(s.extended), o[0]) : Value{};
  const Opcode op = static_cast<Opcode>(code);
  const Value v =
      o.in.size() == 1 ? c.Unary(op, RegOf(o.result), o[0]) : c.Binary(op, RegOf(o.result), o[0], o[1]);
  if (row.op_class == keel::plugin::OpClass::kArithmetic && IsFloat(o.dtype) && o.in.size() == 2)
    c.module.Decorate(v.id, {kNoContraction});
  return v;
}

}  // namespace

Value Apply(const Operation& o) {
  const ScalarOp* row = keel::plugin::find_scalar_op(o.step->op);
  if (row && !(row->dtypes & keel::plugin::dtypes_of(o.dtype))) return {};
  for (const auto& e : kExpansions)
    if (o.step->op == e.name) return Round(o.result, e.make(o));
  const Value v = row ? Direct(o, *row) : Value{};
  return v.id ? Round(o.result, v) : v;
}

bool MayFail(const keel::plugin::Step& step, keel_dt dtype) {
  const ScalarOp* row = keel::plugin::find_scalar_op(step.op);
  return row && (row->may_fail & keel::plugin::dtypes_of(dtype));
}

}  // namespace keel_spirv
