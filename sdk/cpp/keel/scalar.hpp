// scalar.hpp: elements of every dtype as C++ values.
//
// How to read it: Half and Brain are f16 and bf16; visit() calls a generic function with the C++ type
// of a dtype, so that no code here branches on dtypes by hand.
#ifndef KEEL_SCALAR_HPP
#define KEEL_SCALAR_HPP
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "dtype.hpp"

namespace keel {

/// f16 (IEEE 754 binary16); rounds to nearest even.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(double v) : bits(encode(v)) {}
  operator double() const {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                      : std::ldexp(fraction, -24);
    return bits >> 15 ? -magnitude : magnitude;
  }

 private:
  // Round to nearest, ties to even, from the exact double.
  static uint16_t encode(double v) {
    uint16_t sign = std::signbit(v) ? 0x8000 : 0;
    double a = std::fabs(v);
    if (std::isnan(v)) return 0x7e00;
    if (a >= 65520) return sign | 0x7c00;
    if (a < 0x1p-14) return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(a, 24)));
    int exponent = std::ilogb(a);
    // Rounding up to 2048 carries into the exponent, the correct result.
    auto fraction = static_cast<uint32_t>(std::nearbyint(std::ldexp(a, 10 - exponent)));
    return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + fraction));
  }
};

/// bf16: the upper half of an f32; rounds to nearest even.
struct Brain {
  uint16_t bits = 0;
  Brain() = default;
  explicit Brain(double v) {
    auto f = std::bit_cast<uint32_t>(static_cast<float>(v));
    bits = std::isnan(v) ? 0x7fc0 : static_cast<uint16_t>((f + 0x7fff + (f >> 16 & 1)) >> 16);
  }
  operator double() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <class T>
inline constexpr bool is_floating =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

template <class T>
constexpr keel_dt code_of() {
  if constexpr (std::is_same_v<T, Half>)
    return KEEL_F16;
  else if constexpr (std::is_same_v<T, Brain>)
    return KEEL_BF16;
  else
    return dtype_of<T>;
}

template <class... T, class F>
bool visit_types(keel_dt dtype, F& f) {
  return ((dtype == code_of<T>() ? (f(std::type_identity<T>{}), true) : false) || ...);
}
// Calls f(std::type_identity<T>{}); returns false for an unknown dtype.
template <class F>
bool visit(keel_dt dtype, F f) {
  return visit_types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, Half,
                     Brain, float, double>(dtype, f);
}

}  // namespace keel
#endif
