// numbers.h: the numbers that a device computes with, by dtype, as bits.
#ifndef KEEL_PLUGIN_NUMBERS_H
#define KEEL_PLUGIN_NUMBERS_H
#include <keel/keel_base.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace keel::plugin {

inline constexpr const char* kAllTypes = "T=bool|i8|i16|i32|i64|u8|u16|u32|u64|f16|bf16|f32|f64";
inline constexpr const char* kNumTypes = "T=i8|i16|i32|i64|u8|u16|u32|u64|f16|bf16|f32|f64";
inline constexpr const char* kFloatTypes = "T=f16|bf16|f32|f64";

// f16 and bf16 are computed in f32.
struct Computed {
  bool floating, with_sign;
  int bits;
  explicit Computed(keel_dt dt)
      : floating((dt & 255) == (KEEL_F32 & 255) || (dt & 255) == (KEEL_BF16 & 255)),
        with_sign(floating || (dt & 255) == (KEEL_I32 & 255)),
        bits(std::max(static_cast<int>(dt >> 8 & 255), floating ? 32 : 0)) {}
  uint64_t sign() const { return with_sign ? uint64_t{1} << (bits - 1) : 0; }
  uint64_t all() const { return ~uint64_t{0} >> (64 - bits); }
};

// The bits of v in a dtype; of a negative integer extended to 64. Integers are truncated and saturate, NaN is
// 0.
inline uint64_t bits_of_number(keel_dt dt, double v) {
  const Computed dtype(dt);
  if (dtype.floating && dtype.bits == 64) return std::bit_cast<uint64_t>(v);
  if (dtype.floating) return std::bit_cast<uint32_t>(static_cast<float>(v));
  if (dt == KEEL_BOOL) return v != 0;
  if (std::isnan(v)) return 0;
  const int digits = dtype.bits - dtype.with_sign;
  if (v >= std::ldexp(1.0, digits)) return ~uint64_t{0} >> (64 - digits);
  if (v >= 0) return static_cast<uint64_t>(v);
  if (!dtype.with_sign) return 0;
  return v <= -std::ldexp(1.0, digits) ? ~uint64_t{0} << digits
                                       : static_cast<uint64_t>(static_cast<int64_t>(v));
}

}  // namespace keel::plugin
#endif
