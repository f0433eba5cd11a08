// math.cc: functions on f32 and f64 within about 2 units in the last place. GLSL.std.450's own are not used:
// Vulkan allows them errors that the tests do not, and they have no f64 form. Series are Taylor's.
#include <cmath>

#include "math.h"

namespace keel_spirv {
namespace {

constexpr double kPi = 3.14159265358979323846;

}  // namespace

Value Infinite(Value x) { return Like(x, __builtin_inf()); }
Value Nan(Value x) {
  return FromBits(x.IsWide() ? x.code->Integer(Reg::kU64, uint64_t{0x7ff8} << 48) : x.code->U32(0x7fc00000));
}
Value Horner(Value x, const std::vector<double>& c) {  // c[0] + c[1] x + ...
  Value p = Like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) p = p * x + c[i];
  return p;
}
Value ToInteger(Value x) { return x.code->Unary(kConvertFToS, x.IsWide() ? Reg::kU64 : Reg::kU32, x); }
Value ToFloat(Value n) { return n.code->Unary(kConvertSToF, n.IsWide() ? Reg::kF64 : Reg::kF32, n); }

Parts PartsOf(Value x) {
  const Value bits = Bits(x);
  const bool wide = x.IsWide();
  const Value root = bits.code->Integer(bits.reg, wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  const Value e = ShiftArithmetic(bits - root, Like(bits, wide ? 52 : 23));
  return {e, FromBits(bits - (e << (wide ? 52 : 23))) - 1};
}

namespace {

// 2^n; n is an integer register of a normal exponent.
Value PowerOf2(Value n) { return FromBits(n.IsWide() ? (n + 1023) << 52 : (n + 127) << 23); }
struct Reduced {
  Value n, r;
};
Reduced ByLn2(Value x) {  // x = n ln 2 + r
  const Value k = x.code->Ext(kRoundEven, x * 1.44269504088896340736);
  return {ToInteger(k), (x - k * LnHigh(x)) - k * LnLow(x)};
}
Value Expm1Near0(Value r) {
  std::vector<double> c;
  double f = 2;
  for (int k = 2; k <= (r.IsWide() ? 14 : 7); f *= ++k) c.push_back(1 / f);
  return Horner(r, c) * r * r + r;
}
Value Scale(Value x, Value n) {  // x 2^n in two steps: infinity and denormals are then right
  const Value half = ShiftArithmetic(n, Like(n, 1));
  return x * PowerOf2(half) * PowerOf2(n - half);
}
Value Expm1Positive(Value x) {  // 0 <= x <= 60
  const Reduced d = ByLn2(x);
  const Value power = PowerOf2(d.n);
  return power * Expm1Near0(d.r) + (power - 1);
}

Value LogNormal(Value x, Value shift) {  // log(x) - shift ln 2, for normal x
  const Parts parts = PartsOf(x);
  const Value f = parts.f, s = f / (2 + f), u = s * s;
  std::vector<double> c;
  for (int k = 0; k < (x.IsWide() ? 12 : 4); k++) c.push_back(2.0 / (2 * k + 3));
  const Value k = ToFloat(parts.exponent) - shift;
  return k * LnHigh(x) + (f - (s * (f - u * Horner(u, c)) - k * LnLow(x)));
}

Value ErfcFar(Value a) {  // a >= 1
  const Value t = Select(a > 27, Like(a, 27), a);
  return Exp(-(t * t)) * ScaledErfc(t);
}
Value WideErf(Value x) {
  const Value a = Abs(x), t = Select(a < 1, a, Like(a, 1));
  std::vector<double> c;
  double f = 1;
  for (int k = 0; k < 22; f *= ++k) c.push_back((k % 2 ? -2 : 2) / std::sqrt(kPi) / (f * (2 * k + 1)));
  const Value near = Horner(t * t, c) * t, far = 1 - ErfcFar(Select(a < 1, Like(a, 1), a));
  return Select(IsNan(x), x, CopySign(Select(a < 1, near, far), x));
}

}  // namespace

Value ScaledErfc(Value a) {  // the continued fraction, from its far end
  const Code::State f = a.code->While(
      {a, Like(a, 200)}, [](const Code::State& s) { return s[1] > 0; },
      [&](const Code::State& s) -> Code::State {
        return {a + s[1] * 0.5 / s[0], s[1] - 1};
      });
  return 1 / std::sqrt(kPi) / f[0];
}

Value Exp(Value x) { return ExpOfSum(x, Like(x, 0)); }
Value ExpOfSum(Value x, Value low) { return TimesExp(Like(x, 1), x, low); }
Value TimesExp(Value factor, Value x, Value low) {
  const double least = x.IsWide() ? -760 : -120, most = x.IsWide() ? 710 : 90;
  const Value t = Select(x > most, Like(x, most), Select(x < least, Like(x, least), x));
  const Reduced d = ByLn2(t);
  const Value r = d.r + Select(t == x, low, Like(x, 0));
  return Select(IsNan(x), x, Scale(factor * (Expm1Near0(r) + 1), d.n));
}

Value Log(Value x) {
  const Value tiny = x < (x.IsWide() ? 0x1p-1022 : 0x1p-126);
  const Value y = LogNormal(Select(tiny, x * 0x1p54, x), Select(tiny, Like(x, 54), Like(x, 0)));
  const Value z = Select(x == 0, -Infinite(x), Select(x == Infinite(x), x, y));
  return Select((x < 0) | IsNan(x), Nan(x), z);
}

Value Log1p(Value x) {
  const Value u = 1 + x, lost = x - (u - 1), skip = (u > 0x1p60) | (u <= 0);
  return Select(x == 0, x, Log(u) + Select(skip, Like(x, 0), lost / u));
}

Value Tanh(Value x) {
  const Value y = Abs(x) * 2, t = Expm1Positive(Select(y > 44, Like(y, 44), y));
  return Select(IsNan(x), x, CopySign(t / (t + 2), x));
}

// f32: two fits at Chebyshev nodes, as the cpu device has them: erf(x) / x in x^2 up to 1, beyond that
// -log(erfc(x)) in x.
Value Erf(Value x) {
  if (x.IsWide()) return WideErf(x);
  const Value a = Abs(x), t = Select(a > 4, Like(a, 4), a), one = Like(x, 1);
  const Value near = Select(a < 1, a, one);
  const Value p =
      Horner(near * near, {1.1283791658815023, -0.3761262690358034, 0.11283597463486766, -0.02685432879600237,
                           0.005189311942549332, -0.0008018854991498236, 7.882497105645624e-05});
  const Value q = Horner(t, {-0.00030026883851963504, 1.130155101637342, 0.6319562412380637,
                             0.10996079954176997, -0.026355120841330754, 0.00473695064477337,
                             -0.0005920927630537932, 4.551277354200794e-05, -1.6102404476116359e-06});
  return Select(IsNan(x), x, CopySign(Select(a < 1, p * a, 1 - Exp(-q)), x));
}

// Long division of the significands, 8 (f64: 11) bits of the quotient at a time.
Value Remainder(Value x, Value y) {
  const bool wide = x.IsWide();
  const int digits = wide ? 52 : 23, bias = wide ? 1075 : 150, chunk = wide ? 11 : 8;
  const Value a = Bits(Abs(x)), b = Bits(Abs(y)), hidden = a.code->Integer(a.reg, uint64_t{1} << digits);
  const Value zero = Like(a, 0), one = Like(a, 1);
  const auto exponent = [&](Value v) { return Select(v < hidden, one, v >> digits); };
  const auto significand = [&](Value v) { return (v & (hidden - one)) | Select(v < hidden, zero, hidden); };
  const Value infinity = Bits(Infinite(x)), bad = (b == 0) | (b > infinity) | (a >= infinity);
  const Value ea = exponent(a), eb = exponent(b), skip = bad | (a < b) | (b >= infinity);
  const Value m = Select(b == 0, one, significand(b));
  const Code::State last = a.code->While(
      {significand(a) % m, Select(skip, zero, ea - eb)}, [](const Code::State& s) { return s[1] != 0; },
      [&](const Code::State& s) -> Code::State {
        const Value n = Select(s[1] > chunk, Like(s[1], chunk), s[1]);
        return {(s[0] << n) % m, s[1] - n};
      });
  const Value r = Scale(ToFloat(last[0]), eb - bias);
  return Select(bad, Nan(x), Select(skip, x, CopySign(r, x)));
}

namespace {

// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw 2011).
std::vector<Value> Philox(Value key, Value block) {
  Value k0 = Narrow(key), k1 = Narrow(key >> 32);
  std::vector<Value> c = {Narrow(block), Narrow(block >> 32), Like(k0, 0), Like(k0, 0)};
  for (int round = 0; round < 10; round++) {
    const Value p = Widen(c[0]) * 0xD2511F53, q = Widen(c[2]) * 0xCD9E8D57;
    c = {Narrow(q >> 32) ^ c[1] ^ k0, Narrow(q), Narrow(p >> 32) ^ c[3] ^ k1, Narrow(p)};
    k0 = k0 + 0x9E3779B9, k1 = k1 + 0xBB67AE85;
  }
  return c;
}
Value Chosen(const std::vector<Value>& w, Value lane) {
  Value v = w[0];
  for (size_t i = 1; i < w.size(); i++) v = Select(lane == static_cast<double>(i), w[i], v);
  return v;
}
// The element's random bits as u64.
Value RandomBits(keel_dt dt, Value key, Value e) {
  if (dt == KEEL_F64) {
    const std::vector<Value> w = Philox(key, e >> 1);
    return Select((e & 1) == 0, (Widen(w[1]) << 32) | Widen(w[0]), (Widen(w[3]) << 32) | Widen(w[2]));
  }
  return Widen(Chosen(Philox(key, e >> 2), Narrow(e) & 3));
}

}  // namespace

// The layout is that of the reference device; normal numbers are computed in f64.
Value Random(keel_dt dt, Value key, Value index, bool normal) {
  Code& c = *key.code;
  const bool wide = dt == KEEL_F64;
  const auto fraction = [&](Value bits, int n) {
    return c.Unary(kConvertUToF, Reg::kF64, bits) * std::ldexp(1.0, -n);
  };
  if (!normal) {
    const int n = wide ? 53 : dt == KEEL_F32 ? 24 : dt == KEEL_F16 ? 11 : 8;
    const Value bits = RandomBits(dt, key, index) >> ((wide ? 64 : 32) - n);
    return c.Unary(kConvertUToF, RegOf(dt), bits) * std::ldexp(1.0, -n);
  }
  const int drop = wide ? 11 : 0, n = wide ? 53 : 32;
  const Value odd = index & 1, first = index - odd;
  const Value u = fraction((RandomBits(dt, key, first) >> drop) + 1, n);
  const Value t = fraction(RandomBits(dt, key, first + 1) >> drop, n) * (2 * kPi);
  const Value r = c.Ext(kSqrt, Log(u) * -2.0) * Select(odd == 0, CosNear0(t), SinNear0(t));
  return wide ? r : Cast(KEEL_F64, dt, r);
}

}  // namespace keel_spirv
