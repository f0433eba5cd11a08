// storage.hpp: elements of the storage dtypes (8-bit floats, and what is packed into bytes) as numbers. For
// programs and plugins: it needs the types of the C API only.
//
// How to read it: a code is the bits of one element. load_code() and store_code() find it in an array,
// storage_value() and storage_code() convert it. kFloats has a row for each float with a sign.
#ifndef KEEL_STORAGE_HPP
#define KEEL_STORAGE_HPP
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "keel/keel_base.h"

namespace keel {

constexpr int dtype_bits(keel_dt dtype) { return static_cast<int>(dtype >> 8 & 0xff); }
/// Whether a dtype only stores values: no op but cast computes with it.
constexpr bool is_storage(keel_dt dtype) {
  const uint32_t code = dtype & 0xff;
  return (dtype_bits(dtype) > 0 && dtype_bits(dtype) < 8) ||
         (code >= (KEEL_F8E4M3FN & 0xff) && code <= (KEEL_F8E8M0 & 0xff));
}
/// i4, u4, i2, u2: their values are integers.
constexpr bool is_storage_integer(keel_dt dtype) { return is_storage(dtype) && (dtype & 0xff) < 2; }

/// The bits of element i of contiguous data; of an integer of 4 or 2 bits not sign-extended.
inline uint8_t load_code(keel_dt dtype, const void* data, int64_t i) {
  const int bits = dtype_bits(dtype);
  const auto at = static_cast<uint64_t>(i) * static_cast<uint64_t>(bits);
  const int byte = static_cast<const uint8_t*>(data)[at / 8];
  return static_cast<uint8_t>(byte >> at % 8 & ((1 << bits) - 1));
}
/// Leaves the other elements of the byte as they are.
inline void store_code(keel_dt dtype, void* data, int64_t i, uint8_t code) {
  const int bits = dtype_bits(dtype);
  const auto at = static_cast<uint64_t>(i) * static_cast<uint64_t>(bits);
  uint8_t& byte = static_cast<uint8_t*>(data)[at / 8];
  const int mask = ((1 << bits) - 1) << at % 8;
  byte = static_cast<uint8_t>((byte & ~mask) | (code << at % 8 & mask));
}

/// How cast treats numbers without a code of their own.
struct StorageRounding {
  enum Mode : uint8_t { kNearest, kUp, kDown };
  bool saturate = true;
  Mode mode = kNearest;  // of f8e8m0
};

namespace detail {

/// A float with a sign, in bits 0 to `bits` - 1. Codes without the sign: 0; denormals; normals; `most`.
struct StorageFloat {
  keel_dt dtype;
  int bits, mantissa, min_exponent;  // min_exponent: of normal numbers
  int most, infinity, nan;           // codes; 0: there is none
  int sign() const { return 1 << (bits - 1); }
  bool one_zero() const { return nan == sign(); }
};
inline constexpr StorageFloat kFloats[] = {
    {KEEL_F8E4M3FN, 8, 3, -6, 0x7e, 0, 0x7f},
    {KEEL_F8E4M3FNUZ, 8, 3, -7, 0x7f, 0, 0x80},
    {KEEL_F8E5M2, 8, 2, -14, 0x7b, 0x7c, 0x7e},
    {KEEL_F8E5M2FNUZ, 8, 2, -15, 0x7f, 0, 0x80},
    {KEEL_F4E2M1, 4, 1, 0, 7, 0, 0},
};
inline const StorageFloat* find_storage_float(keel_dt dtype) {
  for (const StorageFloat& f : kFloats)
    if (f.dtype == dtype) return &f;
  return nullptr;
}

inline double float_value(const StorageFloat& f, int code) {
  const int size = code & (f.sign() - 1), exponent = size >> f.mantissa,
            fraction = size & ((1 << f.mantissa) - 1);
  if ((f.one_zero() && code == f.nan) || (size > f.most && size != f.infinity)) return NAN;
  double v = INFINITY;
  if (size <= f.most)
    v = std::ldexp(exponent ? fraction + (1 << f.mantissa) : fraction,
                   (exponent ? exponent - 1 : 0) + f.min_exponent - f.mantissa);
  return code & f.sign() ? -v : v;
}

// Rounds to a multiple of the spacing at v; a carry of the mantissa into the exponent gives the right code.
inline int float_code(const StorageFloat& f, long double v, bool saturate) {
  if (std::isnan(v)) return f.nan;
  const int sign = std::signbit(v) ? f.sign() : 0;
  const long double size = std::fabs(v);
  int code = f.most + 1;
  if (!std::isinf(v) && size < std::ldexp(1.0L, 32)) {
    const int exponent = size > 0 ? std::max(std::ilogb(size), f.min_exponent) : f.min_exponent;
    code = static_cast<int>(std::nearbyint(std::ldexp(size, f.mantissa - exponent))) +
           ((exponent - f.min_exponent) << f.mantissa);
  }
  if (code > f.most) {
    if (!saturate && f.nan && !f.infinity) return f.nan | (f.one_zero() ? 0 : sign);
    code = saturate || !f.infinity ? f.most : f.infinity;
  }
  return code == 0 && f.one_zero() ? 0 : sign | code;
}

// f8e8m0: the exponent of a power of two, plus 127.
inline int power_code(long double v, StorageRounding how) {
  constexpr int kNan = 255, kMost = 254;
  if (std::isnan(v) || v < 0) return kNan;
  if (v == 0) return how.saturate ? 0 : kNan;
  if (std::isinf(v)) return how.saturate ? kMost : kNan;
  int exponent = std::ilogb(v);
  const long double rest = std::ldexp(v, -exponent);  // from 1 below 2
  if (how.mode == StorageRounding::kUp ? rest > 1 : how.mode == StorageRounding::kNearest && rest >= 1.5L)
    exponent++;
  const int code = exponent + 127;
  if (code >= 0 && code <= kMost) return code;
  return !how.saturate ? kNan : code < 0 ? 0 : kMost;
}

}  // namespace detail

/// The value of a code; exact.
inline double storage_value(keel_dt dtype, int code) {
  if (const detail::StorageFloat* f = detail::find_storage_float(dtype)) return detail::float_value(*f, code);
  if (dtype == KEEL_F8E8M0) return code == 255 ? NAN : std::ldexp(1.0, code - 127);
  const int bits = dtype_bits(dtype);
  const bool negative = (dtype & 0xff) == 0 && code >> (bits - 1);
  return negative ? code - (1 << bits) : code;
}

/// The code that cast gives a number. To integers: whole numbers wrap, others (`fraction`: of a float dtype)
/// are truncated and saturate, NaN is 0.
inline uint8_t storage_code(keel_dt dtype, long double v, bool fraction, StorageRounding how = {}) {
  if (const detail::StorageFloat* f = detail::find_storage_float(dtype))
    return static_cast<uint8_t>(detail::float_code(*f, v, how.saturate));
  if (dtype == KEEL_F8E8M0) return static_cast<uint8_t>(detail::power_code(v, how));
  const int bits = dtype_bits(dtype), mask = (1 << bits) - 1;
  if (!fraction) return static_cast<uint8_t>(static_cast<int>(std::fmod(v, 16)) & mask);
  const int least = (dtype & 0xff) == 0 ? -(1 << (bits - 1)) : 0, most = least + mask;
  if (std::isnan(v)) return 0;
  return static_cast<uint8_t>((v <= least ? least : v >= most ? most : static_cast<int>(v)) & mask);
}

/// The value of element i of contiguous data of a storage dtype.
inline double storage_element(keel_dt dtype, const void* data, int64_t i) {
  return storage_value(dtype, load_code(dtype, data, i));
}

}  // namespace keel
#endif
