// types.h: the dtypes that ops compute with as C++ types, their rounding, and a visitor from keel_dt to type.
//
// Element types come first; then value() and make<T>(), the only conversions between an element and a number
// to compute with; Arith, Math and Sum, the types to compute in; convert(), the rule of the op `cast`;
// visit(), which calls a generic lambda with the type of a dtype.
#ifndef KEEL_REFERENCE_TYPES_H
#define KEEL_REFERENCE_TYPES_H
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "abi/keel_plugin.h"

namespace reference {

struct Bool {
  uint8_t bits;  // not C++ bool, for which bytes other than 0 and 1 are undefined behaviour
};

// A 16-bit binary float with MANTISSA fraction bits and 15 - MANTISSA exponent bits.
template <int MANTISSA>
struct Small {
  static constexpr int kMantissa = MANTISSA;
  static constexpr int kBias = (1 << (14 - MANTISSA)) - 1;
  static constexpr int kInf = 0x7fff & ~((1 << MANTISSA) - 1);
  uint16_t bits;
};
using Half = Small<10>;
using BFloat = Small<7>;

template <class T>
concept Float = std::same_as<T, Half> || std::same_as<T, BFloat> || std::floating_point<T>;
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept Number = Float<T> || Integer<T>;

// ---- element to number

inline bool value(Bool x) { return x.bits != 0; }
inline double value(float x) { return x; }
inline double value(double x) { return x; }
template <Integer T>
T value(T x) {
  return x;
}
template <int M>
double value(Small<M> x) {
  const int fraction = x.bits & ((1 << M) - 1), exponent = (x.bits & 0x7fff) >> M;
  double v;
  if ((x.bits & Small<M>::kInf) == Small<M>::kInf) {
    v = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {  // denormal: no hidden bit
    v = std::ldexp(fraction, 1 - Small<M>::kBias - M);
  } else {
    v = std::ldexp(fraction + (1 << M), exponent - Small<M>::kBias - M);
  }
  return x.bits & 0x8000 ? -v : v;
}

// ---- number to element: one rounding, to nearest, ties to even

// Rounds |v| to a multiple of the spacing of floats around it. In that unit the fraction carries into the
// exponent by itself: from denormal to normal, and from the last binade to infinity.
template <class S, std::floating_point W>
S encode(W v) {
  const int sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return {static_cast<uint16_t>(S::kInf | 1 << (S::kMantissa - 1))};
  if (v == 0) return {static_cast<uint16_t>(sign)};
  if (std::isinf(v)) return {static_cast<uint16_t>(sign | S::kInf)};
  int exponent;
  std::frexp(v, &exponent);  // |v| is in [2^(exponent-1), 2^exponent)
  const int least = 1 - S::kBias;
  exponent = exponent - 1 < least ? least : exponent - 1;
  if (exponent > S::kBias) return {static_cast<uint16_t>(sign | S::kInf)};
  const int units = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(v), S::kMantissa - exponent)));
  return {static_cast<uint16_t>(sign | (units + ((exponent - least) << S::kMantissa)))};
}

template <class T, class W>
T make(W v) {
  if constexpr (std::same_as<T, Bool>) {
    return {static_cast<uint8_t>(v != 0)};
  } else if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat>) {
    return encode<T>(v);
  } else {
    return static_cast<T>(v);  // integers wrap; never used from float to integer
  }
}

// ---- the types to compute in

// +, -, *, /: exact in double for the small floats, so make() rounds once; unsigned integers wrap.
template <class T>
using Arith = std::conditional_t<Float<T>, double, uint64_t>;
// exp, pow ...: more digits than the result.
template <class T>
using Math = std::conditional_t<std::same_as<T, double>, long double, double>;
// Long sums and products. f64 needs more than twice its digits: with the 64 bits of long double, a sum or
// product of two elements would be rounded twice.
#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 Quad;
#else
using Quad = long double;
#endif
template <class T>
using Sum = std::conditional_t<std::same_as<T, double>, Quad, Arith<T>>;

template <class T>
Arith<T> arith(T x) {
  return static_cast<Arith<T>>(value(x));
}
template <class T>
Sum<T> wide(T x) {
  return static_cast<Sum<T>>(value(x));
}

template <class T>
bool is_nan(T x) {
  if constexpr (Float<T>) return std::isnan(value(x));
  return false;
}
// The lowest and highest of a dtype: max and min of no elements.
template <class T>
T lowest() {
  if constexpr (std::same_as<T, Bool>) return {0};
  if constexpr (Float<T>) return make<T>(-std::numeric_limits<double>::infinity());
  if constexpr (Integer<T>) return std::numeric_limits<T>::min();
}
template <class T>
T highest() {
  if constexpr (std::same_as<T, Bool>) return {1};
  if constexpr (Float<T>) return make<T>(std::numeric_limits<double>::infinity());
  if constexpr (Integer<T>) return std::numeric_limits<T>::max();
}

// Whether a is less than b; NaN is below everything (low) or above (high).
template <class T>
bool less_nan_low(T a, T b) {
  return is_nan(a) ? !is_nan(b) : value(a) < value(b);
}
template <class T>
bool less_nan_high(T a, T b) {
  return is_nan(b) ? !is_nan(a) : value(a) < value(b);
}
// The greater and lesser; NaN wins, and 0 is greater than -0.
template <class T>
T greater_of(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  if constexpr (Float<T>) {
    if (value(a) == value(b)) return std::signbit(value(a)) ? b : a;
  }
  return value(a) < value(b) ? b : a;
}
template <class T>
T lesser_of(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  if constexpr (Float<T>) {
    if (value(a) == value(b)) return std::signbit(value(a)) ? a : b;
  }
  return value(b) < value(a) ? b : a;
}

// ---- the op `cast`

template <Integer To>
To saturate(double v) {  // the bounds are powers of two: exact
  if (std::isnan(v)) return 0;
  if (v <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (v >= std::ldexp(1.0, std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
  return static_cast<To>(v);
}
template <class To, class From>
To convert(From x) {
  if constexpr (Integer<To> && Float<From>) {
    return saturate<To>(value(x));
  } else if constexpr (Float<To> && Integer<From>) {
    return make<To>(static_cast<long double>(x));  // holds 64 bits: one rounding
  } else if constexpr (Float<To> && std::same_as<From, Bool>) {
    return make<To>(value(x) ? 1.0 : 0.0);
  } else {
    return make<To>(value(x));
  }
}

// ---- from dtype to type

template <class T>
struct Tag {
  using type = T;
};
// Sets of dtypes, named as in the catalogue.
struct Any {
  template <class T>
  static constexpr bool has = true;
};
struct Num {
  template <class T>
  static constexpr bool has = Number<T>;
};
struct Floats {
  template <class T>
  static constexpr bool has = Float<T>;
};
struct Integers {
  template <class T>
  static constexpr bool has = Integer<T>;
};
struct Unsigned {
  template <class T>
  static constexpr bool has = Integer<T>&& std::is_unsigned_v<T>;
};
struct SignedOrFloat {
  template <class T>
  static constexpr bool has = Number<T> && !std::is_unsigned_v<T>;
};
struct Indices {
  template <class T>
  static constexpr bool has = std::same_as<T, int32_t> || std::same_as<T, int64_t>;
};
struct Booleans {
  template <class T>
  static constexpr bool has = std::same_as<T, Bool>;
};

template <class T, keel_dt CODE>
struct DtypeEntry {
  template <class Set, class F>
  static bool offer(keel_dt dt, F& f) {
    if constexpr (Set::template has<T>) {
      if (dt == CODE) return f(Tag<T>()), true;
    }
    return false;
  }
};
template <class... E>
struct DtypeEntries {
  template <class Set, class F>
  static bool offer(keel_dt dt, F& f) {
    return (E::template offer<Set>(dt, f) || ...);
  }
};
using AllDtypes =
    DtypeEntries<DtypeEntry<Bool, KEEL_BOOL>, DtypeEntry<int8_t, KEEL_I8>, DtypeEntry<int16_t, KEEL_I16>,
                 DtypeEntry<int32_t, KEEL_I32>, DtypeEntry<int64_t, KEEL_I64>, DtypeEntry<uint8_t, KEEL_U8>,
                 DtypeEntry<uint16_t, KEEL_U16>, DtypeEntry<uint32_t, KEEL_U32>,
                 DtypeEntry<uint64_t, KEEL_U64>, DtypeEntry<Half, KEEL_F16>, DtypeEntry<BFloat, KEEL_BF16>,
                 DtypeEntry<float, KEEL_F32>, DtypeEntry<double, KEEL_F64>>;

// Calls f(Tag<T>()) with the type T of dt; false if dt is not in the set.
template <class Set, class F>
bool visit(keel_dt dt, F f) {
  return AllDtypes::offer<Set>(dt, f);
}

}  // namespace reference
#endif
