// stream.h: results larger than the caches. A store to memory reads the line first; storing past the caches
// saves that read. Loops that cannot do so compute a tile that stays in L1, and the tile is copied. Read
// EachTile first.
#pragma once

#include <algorithm>
#include <cstring>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/fetch.h"
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace keel_cpu {

// With its operands such a result exceeds 32 MiB, the L3 cache of common processors; a smaller one may be
// read from there by the next launch.
inline constexpr int64_t kStreamBytes = 12 << 20;
// Bytes. Of 256 to 8,192 floats, tiles of 256 were the fastest: 0.65 to 0.8 of the time of common stores, as
// without a tile (4,000,000 and 16,000,000 sums of f32, Xeon with AVX-512; 2,048 floats: 0.9).
inline constexpr int64_t kStreamTile = 1024;

// Whether result r of a call is that large and shares no memory with an operand.
inline bool Streams(const keel_call* call, int r, int64_t bytes) {
  if (bytes < kStreamBytes) return false;
  for (int i = 0; i < call->n_in; i++)
    if (In<char>(call, i) == Out<char>(call, r)) return false;
  return true;
}

// memcpy past the caches. Other threads see the bytes after StreamFence.
inline void StreamCopy(char* to, const char* from, int64_t bytes) {
  int64_t done = 0;
#if defined(__x86_64__)
  if (reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) == 0)
    for (; done + kLine <= bytes; done += kLine)
      for (int64_t i = done; i < done + kLine; i += int64_t{sizeof(__m128i)})
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#endif
  std::memcpy(to + done, from + done, static_cast<size_t>(bytes - done));
}
inline void StreamFence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Fetches the operand of the tile after the next one; this one is `bytes` at `from`: 0.75 of the time,
// since the hardware stops at pages.
inline void FetchAhead(const char* from, int64_t bytes) { FetchLines(from + 2 * bytes, bytes); }

// Bytes up to the next cache line.
inline int64_t BeforeLine(const char* to) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kLine);
}
// Calls f(begin, end, to) over [0, n); f writes these elements of `size` bytes to `to`, a tile. Tiles begin
// at cache lines of `out`.
template <class F>
void EachTile(char* out, int64_t size, int64_t n, F&& f) {
  alignas(kLine) char tile[kStreamTile];
  int64_t end = std::min(n, BeforeLine(out) / size);
  if (end > 0) f(int64_t{0}, end, out);
  for (int64_t begin = end; begin < n; begin = end) {
    end = std::min(n, begin + kStreamTile / size);
    f(begin, end, static_cast<char*>(tile));
    StreamCopy(out + begin * size, tile, (end - begin) * size);
  }
  StreamFence();
}

// The same by loop and, from a cache line on, by past, which stores past the caches itself. No element is in
// two lines.
template <class F, class G>
void EachPast(char* out, int64_t size, int64_t n, F&& loop, G&& past) {
  const int64_t before = std::min(n, BeforeLine(out) / size);
  loop(int64_t{0}, before, out);
  past(before, n, out + before * size);
  StreamFence();
}

}  // namespace keel_cpu
