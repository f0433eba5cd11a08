// int8_bin_products.cc: see int8_bin_products.h.
#include "plugins/cpu/matmul/int8_bin_products.h"

#include <algorithm>

namespace keel_cpu {

int64_t PartsOf(int64_t units, int64_t quads) {
  constexpr int64_t kPerThread = 3;
  const int64_t wanted = kPerThread * Budget();
  if (Budget() <= 1 || units >= wanted) return 1;
  return std::clamp<int64_t>((wanted + units - 1) / units, 1, quads);
}

void PadToQuad(Int8Result* result) {
  for (auto* v : {&result->scale, &result->shift}) v->resize(v->size() + kQuad);
}

BinScratch::BinScratch(int64_t depth, const Int8Result& result) {
  constexpr auto kSums = static_cast<size_t>(kChunk * kQuad * kMostVectors * kPlaces * 4);
  panel = Allocate(static_cast<size_t>((depth + 3) / 4 * kGroupBytes));
  sums = Allocate(kSums);
  (result.Bytes() == 1 ? made : turned) = Allocate(result.Bytes() == 1 ? kSums / 4 : kSums);
}

void MultiplyBins(const BinPanel& panel, const BinShape& s, const char* weights, int64_t begin, int64_t end,
                  int64_t channels, const Int8Result& result, int64_t channel, char* y, int64_t step,
                  const BinScratch& own) {
  const BinLoopTable& loops = *BinLoops();
  const int64_t places = panel.vectors * kPlaces, blocks = s.Blocks();
  const bool bytes = result.Bytes() == 1;
  auto* sums = reinterpret_cast<int32_t*>(own.sums.get());
  const auto multiply = [&](int64_t q, int64_t b, int32_t* to) {
    int64_t at;
    std::memcpy(&at, weights + (q * blocks + b) * 8, sizeof at);
    loops.sums(panel.cells + s.Begin(b) * kGroupBytes, panel.vectors, weights + at, b == 0, panel.zero, to);
  };
  for (int64_t first = begin; first < end; first += kChunk) {
    const int64_t stop = std::min(first + kChunk, end), done = (first - begin) * kQuad,
                  wide = std::min(channels - done, (stop - first) * kQuad);
    char* to = y + static_cast<uint64_t>(done) * result.Bytes();
    const auto finish = [&](int64_t q, const int32_t* from) {
      loops.bytes(from, panel.vectors, result, channel + (q - begin) * kQuad,
                  own.made.get() + (q - first) * places * kQuad);
    };
    if (bytes && blocks == 1) {  // sums stay in the first cache
      for (int64_t q = first; q < stop; q++) multiply(q, 0, sums), finish(q, sums);
    } else {
      for (int64_t b = 0; b < blocks; b++)
        for (int64_t q = first; q < stop; q++) multiply(q, b, sums + (q - first) * kQuad * places);
      for (int64_t q = first; bytes && q < stop; q++) finish(q, sums + (q - first) * kQuad * places);
    }
    if (bytes) {
      loops.rows(reinterpret_cast<const uint32_t*>(own.made.get()), panel.vectors, panel.rows, wide, to,
                 step);
      continue;
    }
    loops.rows(reinterpret_cast<const uint32_t*>(sums), panel.vectors, panel.rows, wide * 4, own.turned.get(),
               wide * 4);
    Int16Loops().finish(reinterpret_cast<int32_t*>(own.turned.get()), wide, panel.rows, wide, result,
                        channel + done, to, step);
  }
}

}  // namespace keel_cpu
