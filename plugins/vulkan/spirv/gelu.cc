// gelu.cc: x times the normal distribution function of x. Far below 0 the body's 1 + erf(x / sqrt(2)) has
// lost all digits; here the tail is exp(-x^2 / 2) times a function that changes slowly.
#include <cmath>

#include "math.h"

namespace keel_spirv {
namespace {

// exp(a^2) erfc(a), a >= 0, as a fit at Chebyshev nodes of (1 + 2 a) times it in (a - 2) / (a + 2).
Value NarrowTail(Value a) {
  return Horner((a - 2) / (a + 2), {1.27697839, -0.0927637628, -0.166031096, 0.164049454, -0.0542119585,
                                    -0.00801896308, 0.00868915966, 0.00121741059, -0.00139570695,
                                    -0.000357920448, 0.000160803582, 6.33694585e-05}) /
         (1 + a * 2);
}

// factor * exp(-a^2 / 2): the square of the upper half of a's digits is exact.
Value TimesBell(Value factor, Value a) {
  const Value bits = Bits(a);
  const Value h = FromBits(bits & bits.code->Integer(bits.reg, a.IsWide() ? ~uint64_t{0} << 27 : 0xfffff000));
  return TimesExp(factor, h * h * -0.5, (a - h) * (a + h) * -0.5);
}

}  // namespace

Value Gelu(Value x) {
  const Value a = Select(Abs(x) < 40, Abs(x), Like(x, 40)), r = a * std::sqrt(0.5), half = Like(x, 0.5);
  const Value far = r > 1, t = Select(far, r, Like(r, 1));
  const Value tail =
      x.IsWide() ? TimesBell(a * half * ScaledErfc(t), a) : TimesBell(a * half * NarrowTail(r), a);
  const Value below = x.IsWide() ? Select(far, tail, a * half * (1 - Erf(r))) : tail;  // |x| times the tail
  const Value y = Select(x < 0, -below, x - below);
  return Select(IsNan(x), x, Select(x == -Infinite(x), Nan(x), y));  // -infinity times 0
}

}  // namespace keel_spirv
