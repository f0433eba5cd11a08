// integer_loops.h: the loops of integer_images.cc, per SIMD level.
#pragma once

#include <cstdint>

namespace keel_cpu {

struct IntegerLoopTable {
  // 8-bit to 16-bit integers.
  void (*widen)(const void* from, bool is_signed, int64_t n, int16_t* to);
  // sums[i] += (x[i] - zero) * w[i], which wraps.
  void (*accumulate)(const void* x, bool is_signed, int32_t zero, const int16_t* w, int64_t n, int32_t* sums);
};
const IntegerLoopTable& IntegerLoops();

}  // namespace keel_cpu
