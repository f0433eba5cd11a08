// winograd_loops.h: the transforms of the Winograd algorithm F(2x2, 3x3): four adjacent results need 16
// products of sums instead of 36. Images are channels last. Lavin and Gray, Fast Algorithms for Convolutional
// Neural Networks, 2015.
#pragma once

#include <cstdint>

namespace keel_cpu {

// The epilogue: bias, and bounds of the results.
struct Finish {
  const float* bias;
  float low, high;
};

struct WinogradTable {
  // 4x4 image cells, row-major, to 16 numbers: number q of channel c is to[q * step + c].
  void (*transform_input)(const float* const* cells, int64_t channels, float* to, int64_t step);
  // 16 such numbers to 2x2 results. `added` (may be null) is a summand in the results' layout, before the
  // bounds. False: a result was not finite before the bounds.
  bool (*transform_output)(const float* from, int64_t step, int64_t channels, const Finish& finish,
                           const float* const* added, float* const* y);
};
const WinogradTable& WinogradLoops();

}  // namespace keel_cpu
