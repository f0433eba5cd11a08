// transpose.h: a matrix transpose in registers. Blocks of 16 bytes by as many rows go through a perfect
// shuffle, which every SIMD level has; blocks are visited so that whole cache lines are read and written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "plugins/cpu/parallel/stream.h"

namespace keel_cpu {

// y[j * sy + i] = x[i * sx + j] for a block of kSide by kSide.
template <class T>
struct TransposeBlock {
  static constexpr int kSide = 16 / sizeof(T);
  typedef T V __attribute__((vector_size(16)));

  static void Run(const T* x, int64_t sx, T* y, int64_t sy) {
    V rows[kSide];
    for (int i = 0; i < kSide; i++) std::memcpy(&rows[i], x + i * sx, 16);
      // Interleaving rows r and r + half into rows 2r and 2r + 1, log2(kSide) times, is a transpose.
#pragma GCC unroll 4
    for (int stage = 1; stage < kSide; stage *= 2) {
      V next[kSide];
#pragma GCC unroll 8
      for (int r = 0; r < kSide / 2; r++) Interleave(rows[r], rows[r + kSide / 2], &next[2 * r]);
#pragma GCC unroll 16
      for (int r = 0; r < kSide; r++) rows[r] = next[r];
    }
    for (int i = 0; i < kSide; i++) std::memcpy(y + i * sy, &rows[i], 16);
  }

 private:
  static void Interleave(V a, V b, V* to) {
    if constexpr (kSide == 2) {
      to[0] = __builtin_shufflevector(a, b, 0, 2);
      to[1] = __builtin_shufflevector(a, b, 1, 3);
    } else if constexpr (kSide == 4) {
      to[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      to[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    } else if constexpr (kSide == 8) {
      to[0] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      to[1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    } else {
      to[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      to[1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
  }
};

// Blocks in tiles of whole cache lines. kDown: each line of y is completed before the next, else each line of
// x.
template <class T, bool kDown>
[[gnu::always_inline]] inline void TransposeTiles(const T* x, int64_t sx, int64_t rows, int64_t columns, T* y,
                                                  int64_t sy) {
  constexpr int64_t kSide = TransposeBlock<T>::kSide, kLine = std::max<int64_t>(64 / sizeof(T), kSide);
  const auto corner = [=](int64_t i, int64_t ie, int64_t j, int64_t je) {
    for (int64_t a = i; a < ie; a++)
      for (int64_t b = j; b < je; b++) y[b * sy + a] = x[a * sx + b];
  };
  for (int64_t i = 0; i < rows; i += kLine)
    for (int64_t j = 0; j < columns; j += kLine) {
      const int64_t ie = std::min(rows, i + kLine), je = std::min(columns, j + kLine);
      const int64_t iw = i + (ie - i) / kSide * kSide, jw = j + (je - j) / kSide * kSide;
      const auto block = [=](int64_t a, int64_t b) {
        TransposeBlock<T>::Run(x + a * sx + b, sx, y + b * sy + a, sy);
      };
      if constexpr (kDown) {
        for (int64_t b = j; b < jw; b += kSide)
          for (int64_t a = i; a < iw; a += kSide) block(a, b);
      } else {
        for (int64_t a = i; a < iw; a += kSide)
          for (int64_t b = j; b < jw; b += kSide) block(a, b);
      }
      corner(i, iw, jw, je);
      corner(iw, ie, j, je);
    }
}

// The same with each whole line of y made in a tile and stored at once, past the caches if `streams`: lines
// of y at a distance of a large power of two share a cache set and would evict one another between their
// parts.
template <class T>
[[gnu::noinline]] void TransposeLines(const T* x, int64_t sx, int64_t rows, int64_t columns, T* y, int64_t sy,
                                      bool streams) {
  constexpr int64_t kSide = 64 / sizeof(T), kBytes = 64;
  alignas(kBytes) T tile[kSide * kSide];
  for (int64_t i = 0; i < rows; i += kSide)
    for (int64_t j = 0; j < columns; j += kSide) {
      const int64_t high = std::min(kSide, rows - i), wide = std::min(kSide, columns - j);
      TransposeTiles<T, false>(x + i * sx + j, sx, high, wide, tile, kSide);
      for (int64_t b = 0; b < wide; b++) {
        char* to = reinterpret_cast<char*>(y + (j + b) * sy + i);
        const char* from = reinterpret_cast<const char*>(tile + b * kSide);
        if (high < kSide)
          std::memcpy(to, from, static_cast<size_t>(high) * sizeof(T));
        else if (streams)
          StreamCopy(to, from, kBytes);
        else
          std::memcpy(to, from, kBytes);
      }
    }
}

// y[j * sy + i] = x[i * sx + j] for i < rows, j < columns. Cache lines at a distance of a large power of two
// map to the same cache set.
template <class T>
void Transpose(const T* x, int64_t sx, int64_t rows, int64_t columns, T* y, int64_t sy,
               bool streams = false) {
  const bool in_lines = sy * sizeof(T) % kLine == 0 && reinterpret_cast<uintptr_t>(y) % kLine == 0;
  if (in_lines && (streams || (sy * sizeof(T) % 4096 == 0 && sy <= sx)))
    return TransposeLines(x, sx, rows, columns, y, sy, streams);
  if (sy * sizeof(T) % 4096 == 0 && sy > sx) return TransposeTiles<T, true>(x, sx, rows, columns, y, sy);
  TransposeTiles<T, false>(x, sx, rows, columns, y, sy);
}

}  // namespace keel_cpu
