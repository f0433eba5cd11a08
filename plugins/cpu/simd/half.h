// half.h: the two 16-bit float types. They are storage only: loops widen to float, compute, and round once
// (to nearest, ties to even). Branch-free bit arithmetic, so that the loops vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace keel_cpu {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

inline float Widen(F16 h) {
  // The exponent biases differ by 112: one exact multiplication also normalises denormals.
  const uint32_t magnitude = static_cast<uint32_t>(h.bits & 0x7fff) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = (h.bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special |
                              static_cast<uint32_t>(h.bits & 0x8000) << 16);
}
inline float Widen(BF16 h) { return std::bit_cast<float>(static_cast<uint32_t>(h.bits) << 16); }
template <class T>
inline T Widen(T v) {
  return v;
}

inline void Narrow(float v, F16& out) {
  const uint32_t all = std::bit_cast<uint32_t>(v), sign = all >> 16 & 0x8000, x = all & 0x7fffffff;
  // Below 2^-14: adding 0.5 shifts the bits to a denormal's position and rounds them.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(x) + 0.5f) - 0x3f000000;
  const uint32_t normal = (x + 0xc8000fff + (x >> 13 & 1)) >> 13;
  uint32_t h = x < 0x38800000 ? denormal : normal;
  h = x >= 0x47800000 ? 0x7c00 : h;
  h = x > 0x7f800000 ? 0x7e00 : h;
  out.bits = static_cast<uint16_t>(sign | h);
}
inline void Narrow(float v, BF16& out) {
  const uint32_t x = std::bit_cast<uint32_t>(v);
  const uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  out.bits = static_cast<uint16_t>((x & 0x7fffffff) > 0x7f800000 ? (x >> 16 | 0x40) : rounded);
}
template <class T>
inline void Narrow(T v, T& out) {
  out = v;
}

// Rounds double to float to odd: the last bit records inexactness, so the following rounding to 16 bits is
// not a second rounding to nearest.
inline float ToOdd(double v) {
  const float f = static_cast<float>(v);
  if (!(std::fabs(v) <= 0x1.fffffep127) || static_cast<double>(f) == v) return f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(v)) bits--;
  return std::bit_cast<float>(bits | 1);
}

template <class To>
inline To Rounded(float v) {
  To out;
  Narrow(v, out);
  return out;
}

}  // namespace keel_cpu
