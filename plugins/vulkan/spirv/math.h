// math.h: functions (math.cc, turn.cc, power.cc), and the parts that these share.
#pragma once

#include <vector>

#include "dtypes.h"

namespace keel_spirv {

// ---- functions of f32 and f64
Value Gelu(Value x);  // gelu.cc
Value Exp(Value x);
Value Log(Value x);
Value Log1p(Value x);
Value Sin(Value x);
Value Cos(Value x);
Value Tanh(Value x);
Value Erf(Value x);
Value Pow(Value x, Value y);
Value Remainder(Value x, Value y);  // C's fmod, exact
// Element `index` (u64) of the op `random`, of dtype dt.
Value Random(keel_dt dt, Value key, Value index, bool normal);

// ---- parts
Value Infinite(Value like);
Value Nan(Value like);
Value Horner(Value x, const std::vector<double>& c);  // c[0] + c[1] x + ...
Value ToInteger(Value x);                             // signed, as wide as x
Value ToFloat(Value n);
Value ExpOfSum(Value x, Value low);                // exp(x + low), for low far below x
Value TimesExp(Value factor, Value x, Value low);  // factor * exp(x + low), also where exp alone is denormal

// ln 2 in two parts; the product of the first one with an exponent is exact.
inline double LnHigh(Value x) { return x.IsWide() ? 6.93147180369123816490e-01 : 0.693145751953125; }
inline double LnLow(Value x) { return x.IsWide() ? 1.90821492927058770002e-10 : 1.42860682030941723e-6; }

// x > 0, normal, is 2^exponent (1 + f), with 1 + f from sqrt(1/2) to sqrt(2).
struct Parts {
  Value exponent, f;  // exponent: signed integer
};
Parts PartsOf(Value x);

Value ScaledErfc(Value a);  // f64: exp(a^2) erfc(a), for a >= 1
Value SinNear0(Value x);    // |x| < 2^20
Value CosNear0(Value x);

}  // namespace keel_spirv
