// narrow_loops.h: the kernel of a 1x1 convolution to 16 or 24 channels (narrow.h).
#pragma once

#include <cstdint>

namespace keel_cpu {

inline constexpr int64_t kNarrowPanel = 16;  // channels; the second panel of 24 is half empty

// y[pixels, channels] = x[pixels, depth] * panels + bias + added, bounded; a NaN stays.
struct NarrowShape {
  int64_t depth;
  const float* panels;  // [panel][depth][kNarrowPanel]
  const float* bias;    // of whole panels
  float low, high;
};
// added: null, or may be y.
using NarrowProduct = void(const NarrowShape& s, const float* x, const float* added, int64_t pixels,
                           float* y);
struct NarrowLoops {
  int64_t block;                 // pixels whose sums are in registers
  NarrowProduct *to_16, *to_24;  // channels
};
const NarrowLoops* NarrowLoopsHere();  // null: not for this class of processor

}  // namespace keel_cpu
