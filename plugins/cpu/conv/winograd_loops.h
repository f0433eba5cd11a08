// winograd_loops.h: the transforms of Winograd's way to convolve with 3x3 windows, F(2x2, 3x3): four
// neighbouring results need 16 products of sums, where nine products for each would be 36. Images have
// channels side by side. After Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
#pragma once

#include <cstdint>

namespace keel_cpu {

// What follows a convolution: low and high bound the results.
struct Finish {
  const float* bias;
  float low, high;
};

struct WinogradTable {
  // 4x4 cells of an image, row by row, to 16 numbers: number q of channel c to to[q * step + c].
  void (*enter)(const float* const* cells, int64_t channels, float* to, int64_t step);
  // 16 such numbers to 2x2 results; `added` (of equal places) before the bounds, or null. False: some result
  // was not finite before these.
  bool (*leave)(const float* from, int64_t step, int64_t channels, const Finish& finish,
                const float* const* added, float* const* y);
};
const WinogradTable& WinogradLoops();

}  // namespace keel_cpu
