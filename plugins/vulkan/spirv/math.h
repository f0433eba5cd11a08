// math.h: parts that the functions of math.cc, turn.cc and power.cc share.
#pragma once

#include <vector>

#include "ops.h"

namespace keel_spirv {

Value Infinite(Value like);
Value Nan(Value like);
Value Horner(Value x, const std::vector<double>& c);  // c[0] + c[1] x + ...
Value ToInteger(Value x);                             // signed, as wide as x
Value ToFloat(Value n);
Value ExpOfSum(Value x, Value low);   // exp(x + low), for low far below x
Value TimesExp(Value factor, Value x, Value low);  // factor * exp(x + low), also where exp alone is denormal

// ln 2 in two parts; the product of the first one with an exponent is exact.
inline double LnHigh(Value x) { return x.IsWide() ? 6.93147180369123816490e-01 : 0.693145751953125; }
inline double LnLow(Value x) { return x.IsWide() ? 1.90821492927058770002e-10 : 1.42860682030941723e-6; }

// x > 0, normal, is 2^exponent (1 + f), with 1 + f from sqrt(1/2) to sqrt(2).
struct Parts {
  Value exponent, f;  // exponent: signed integer
};
Parts PartsOf(Value x);

Value SinNear0(Value x);  // |x| < 2^20
Value CosNear0(Value x);

}  // namespace keel_spirv
