// grouped_loops.cc: see grouped_loops.h. A block of up to four channels by up to four vectors of places stays
// in registers along k.
#include "plugins/cpu/conv/grouped_loops.h"

#include <algorithm>

#include "plugins/cpu/simd/avx2.h"

#if defined(__x86_64__)
namespace keel_cpu {
namespace {

// Keeps the compiler from loading operands before their use, where they do not fit in registers.
KEEL_AVX2_INLINE void InOrder(__m256* v) { asm volatile("" : "+x"(*v)); }

template <int kChannels, int kVectors>
KEEL_AVX2 [[gnu::noinline]] void Block(const PlaceSums& s, int64_t place, float* to, int64_t step) {
  __m256 sums[kChannels][kVectors];
#pragma GCC unroll 4
  for (int c = 0; c < kChannels; c++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++)
      sums[c][v] = s.start == nullptr ? _mm256_setzero_ps() : _mm256_broadcast_ss(s.start + c);
  const float *cells = s.cells + place, *w = s.weights;
  const int64_t* at = s.at;
  for (const float* end = w + s.depth * kChannels; w != end; w += kChannels, at++) {
    __m256 seen[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) {
      seen[v] = _mm256_loadu_ps(cells + *at + v * kPlacesOfVector);
      InOrder(&seen[v]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; c++) {
      __m256 weight = _mm256_broadcast_ss(w + c);
      InOrder(&weight);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) {
        sums[c][v] = _mm256_fmadd_ps(seen[v], weight, sums[c][v]);
        InOrder(&sums[c][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kChannels; c++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) _mm256_storeu_ps(to + c * step + v * kPlacesOfVector, sums[c][v]);
}

// Blocks of the places; one of a single vector would wait for each of its sums.
template <int kChannels>
void EachBlock(const PlaceSums& s, int64_t vectors, float* to, int64_t step) {
  constexpr int64_t kMost = kChannels == 2 ? 4 : 3;
  for (int64_t v = 0; v < vectors;) {
    const int64_t left = vectors - v, place = v * kPlacesOfVector,
                  now = left == kMost + 1 ? 2 : std::min(left, kMost);
    if (now == 1) Block<kChannels, 1>(s, place, to + place, step);
    if (now == 2) Block<kChannels, 2>(s, place, to + place, step);
    if (now == 3) Block<kChannels, 3>(s, place, to + place, step);
    if constexpr (kMost == 4)
      if (now == 4) Block<kChannels, 4>(s, place, to + place, step);
    v += now;
  }
}

void Sum(const PlaceSums& s, int64_t channels, int64_t vectors, float* to, int64_t step) {
  if (channels == 2) return EachBlock<2>(s, vectors, to, step);
  if (channels == 3) return EachBlock<3>(s, vectors, to, step);
  EachBlock<4>(s, vectors, to, step);
}

KEEL_AVX2_INLINE void CopyVector(const float* from, float* to) {
  _mm256_storeu_ps(to, _mm256_loadu_ps(from));
}
KEEL_AVX2 void Copy(const float* from, int64_t from_step, int64_t rows, int64_t n, float* to, int64_t step) {
  constexpr int64_t kLanes = kPlacesOfVector;
  for (int64_t r = 0; r < rows; r++, from += from_step, to += step) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) CopyVector(from + i, to + i);
    if (i < n && n >= kLanes) {  // overlaps the vector before
      CopyVector(from + n - kLanes, to + n - kLanes);
      continue;
    }
    for (; i < n; i++) to[i] = from[i];
  }
}

// The numbers in even lanes of a and, in lanes that kOfB chooses, of b: of 16 neighbours, or of 15, b from
// the eighth on.
template <int kOfB>
KEEL_AVX2_INLINE void StoreHalf(const float* a, const float* b, float* to) {
  const __m256 parted = _mm256_shuffle_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(b), kOfB);
  _mm256_storeu_ps(to, _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(parted), 0xd8)));
}
KEEL_AVX2 void CopyHalf(const float* from, int64_t from_step, int64_t rows, int64_t n, float* to,
                        int64_t step) {
  constexpr int64_t kLanes = kPlacesOfVector;
  for (int64_t r = 0; r < rows; r++, from += from_step, to += step) {
    int64_t i = 0;
    for (; i + kLanes < n; i += kLanes) StoreHalf<0x88>(from + 2 * i, from + 2 * i + kLanes, to + i);
    if (i < n && n >= kLanes) {  // ends with the last number; overlaps the vector before
      const float* last = from + 2 * (n - kLanes);
      StoreHalf<0xd8>(last, last + kLanes - 1, to + n - kLanes);
      continue;
    }
    for (; i < n; i++) to[i] = from[2 * i];
  }
}

constexpr PlaceLoops kLoops = {Sum, Copy, CopyHalf};

}  // namespace

const PlaceLoops* LoopsOfPlaces() { return SimdLevel() == 1 ? &kLoops : nullptr; }

}  // namespace keel_cpu

#else

namespace keel_cpu {
const PlaceLoops* LoopsOfPlaces() { return nullptr; }
}  // namespace keel_cpu

#endif
