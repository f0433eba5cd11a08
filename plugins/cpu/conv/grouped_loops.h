// grouped_loops.h: sums of products of weights and successive cells of plain images, with AVX2.
#pragma once

#include <cstdint>

namespace keel_cpu {

inline constexpr int64_t kPlacesOfVector = 8;

// Results of a few channels. Place p of channel c is start[c] + the sum over k, in order, of
// weights[k * channels + c] * cells[at[k] + p].
struct PlaceSums {
  const float* cells;
  const int64_t* at;
  int64_t depth;
  const float *weights, *start;  // no start: zeros
};
inline constexpr int64_t kMostChannelsOfSums = 4;
struct PlaceLoops {
  // Of 2 to 4 channels at so many vectors of places; rows of `to` are `step` numbers apart.
  void (*sum)(const PlaceSums& s, int64_t channels, int64_t vectors, float* to, int64_t step);
  // Copies rows of n numbers; the rows of `to` begin `step` numbers apart.
  void (*copy)(const float* from, int64_t from_step, int64_t rows, int64_t n, float* to, int64_t step);
  // Copies every second one of 2 n - 1 numbers of each row.
  void (*copy_half)(const float* from, int64_t from_step, int64_t rows, int64_t n, float* to, int64_t step);
};
const PlaceLoops* LoopsOfPlaces();  // null: not for this class of processor

}  // namespace keel_cpu
