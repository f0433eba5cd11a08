// power.cc: pow. f32 is computed in f64; f64 in pairs of f64, because y log(x) is needed to 2^-63.
#include <cmath>

#include "math.h"

namespace keel_spirv {
namespace {

struct Pair {  // hi + lo
  Value hi, lo;
};

// Dekker 1971, Knuth 1969; a product has no fused multiply-add, which Vulkan does not promise.
Pair Sum(Value a, Value b) {
  const Value s = a + b, c = s - a;
  return {s, (a - (s - c)) + (b - c)};
}
Pair FastSum(Value a, Value b) {  // |a| >= |b|
  const Value s = a + b;
  return {s, b - (s - a)};
}
Value Head(Value x) {
  const Value bits = Bits(x);
  return FromBits(bits & bits.code->Integer(Reg::kU64, ~uint64_t{0x7ffffff}));
}
Pair Product(Value a, Value b) {
  const Value p = a * b, ah = Head(a), bh = Head(b), al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
Pair Product(Pair a, Pair b) {
  const Pair p = Product(a.hi, b.hi);
  return FastSum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
Pair Quotient(Value a, Pair b) {
  const Value q = a / b.hi;
  const Pair p = Product(q, b.hi);
  return FastSum(q, (((a - p.hi) - p.lo) - q * b.lo) / b.hi);
}

// log(x) - shift ln 2 for normal x: with s = f / (2 + f), 2 s + s^3 (2/3 + 2/5 s^2 + ...).
Pair LogOf(Value x, Value shift) {
  const Parts parts = PartsOf(x);
  const Pair s = Quotient(parts.f, Sum(Like(x, 2), parts.f)), u = Product(s, s);
  std::vector<double> c;
  for (int k = 1; k < 13; k++) c.push_back(2.0 / (2 * k + 3));
  Pair factor = Sum(Like(x, 0x1.5555555555555p-1), u.hi * Horner(u.hi, c));
  factor.lo = factor.lo + 0x1.5555555555555p-55;
  const Pair term = Product(Product(u, s), factor), near = Sum(s.hi * 2, term.hi);
  const Value k = ToFloat(parts.exponent) - shift, low = near.lo + (s.lo * 2 + term.lo) + k * LnLow(x);
  const Pair log = Sum(k * LnHigh(x), near.hi);
  return FastSum(log.hi, log.lo + low);
}

// a^y for a >= 0. Beyond 2^70 every y gives 0, 1 or infinity.
Value WidePower(Value a, Value y) {
  const Value special = (a == 0) | (a == Infinite(a)), tiny = a < 0x1p-1022;
  const Value normal = Select(special, Like(a, 1), Select(tiny, a * 0x1p54, a));
  const Pair log = LogOf(normal, Select(tiny & !special, Like(a, 54), Like(a, 0)));
  const Value most = Select(y > 0x1p70, Like(y, 0x1p70), Select(y < -0x1p70, Like(y, -0x1p70), y));
  const Pair p = Product(most, log.hi), z = FastSum(p.hi, p.lo + most * log.lo);
  const Value at_end = Select((y > 0) ^ (a == 0), Infinite(a), Like(a, 0));
  return Select(special, at_end, ExpOfSum(z.hi, z.lo));
}

// Zeros, infinities and NaN as C defines them; power(|x|, y) computes the rest.
template <class Power>
Value PowBy(Value x, Value y, Power power) {
  const Value half = y * 0.5, whole = Floor(y) == y, odd = whole & (Floor(half) != half);
  const Value plain = power(Abs(x), y), negative = Bits(x) >> 63 == 1;
  const Value signed_one = Select(odd & negative, -plain, plain);
  const Value real = Select((x < 0) & (x > -Infinite(x)) & !whole, Nan(x), signed_one);
  const Value one = (x == 1) | (y == 0) | ((x == -1) & (Abs(y) == Infinite(y)));
  return Select(one, Like(x, 1), Select(IsNan(x) | IsNan(y), Nan(x), real));
}

}  // namespace

Value Pow(Value x, Value y) {
  if (x.IsWide()) return PowBy(x, y, WidePower);
  Code& c = *x.code;
  const Value r = PowBy(c.Unary(kFConvert, Reg::kF64, x), c.Unary(kFConvert, Reg::kF64, y),
                        [](Value a, Value b) { return Exp(b * Log(a)); });
  return c.Unary(kFConvert, Reg::kF32, r);
}

}  // namespace keel_spirv
