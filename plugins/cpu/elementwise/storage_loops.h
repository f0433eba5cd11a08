// storage_loops.h: f32 to the codes of the storage floats with a sign (8-bit floats, f4e2m1), as a loop.
#pragma once

#include <cstdint>

namespace keel_cpu {

struct SmallFormat {
  int32_t mantissa, min_exponent, most;  // see keel::detail::StorageFloat
  int32_t sign, nan;
  int32_t over;                // the code of what is too large, without the sign
  bool one_zero, signed_over;  // -0 is NaN; `over` takes the sign
};
using EncodeLoop = void (*)(const SmallFormat& format, const float* x, uint8_t* codes, int64_t n);
EncodeLoop FindEncode();

}  // namespace keel_cpu
