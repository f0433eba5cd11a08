// integer_loops.h: the loops of integer_images.cc, per SIMD level.
#pragma once

#include <cstdint>

#include "abi/keel_base.h"

namespace keel_cpu {

// Writes sum * scale + shift, at least `low` and at most `high`. An 8-bit result is rounded, to even in the
// middle, and `zero` is added; the bounds keep it in its dtype's range.
struct IntegerEnd {
  keel_dt dtype = KEEL_I32;                        // i32: the sum itself
  const float *scale = nullptr, *shift = nullptr;  // of the first channel
  float low = 0, high = 0;
  int32_t zero = 0;
};

struct IntegerLoopTable {
  // 8-bit to 16-bit integers.
  void (*widen)(const void* from, bool is_signed, int64_t n, int16_t* to);
  // sums[i] += (x[i] - zero) * w[i], which wraps.
  void (*accumulate)(const void* x, bool is_signed, int32_t zero, const int16_t* w, int64_t n, int32_t* sums);
  void (*finish)(const int32_t* sums, int64_t n, const IntegerEnd& end, void* to);
};
const IntegerLoopTable& IntegerLoops();

}  // namespace keel_cpu
