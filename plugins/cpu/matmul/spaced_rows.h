// spaced_rows.h: a copy of rows whose distance is a multiple of a way of the first-level cache (4 KiB). Such
// rows share a set, which holds eight lines on AMD's processors: the twelve rows of a block of AVX-512 would
// push each other out at every value of k (128x3072x768 on an EPYC: 0.93 of the time with the copy).
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "plugins/cpu/common.h"
#include "plugins/cpu/onednn/onednn.h"
#include "plugins/cpu/parallel/stream.h"

namespace keel_cpu {

class SpacedRows {
 public:
  // Whether a block of so many rows, `step` bytes apart, does not fit a set.
  static bool AreNeeded(int64_t rows, int64_t step) {
    constexpr int64_t kWay = 4096;
    static const int64_t lines = sysconf(_SC_LEVEL1_DCACHE_ASSOC);  // of a set, if it is known
    return step > 0 && step % kWay == 0 && lines > 0 && rows > lines;
  }
  SpacedRows(int64_t rows, int64_t bytes)
      : bytes_(bytes), step_(bytes + kLine), copy_(Allocate(static_cast<size_t>(rows * step_))) {}
  // The copy of rows `step` bytes apart. Rows from another place than in the last call replace it.
  const char* Of(const char* from, int64_t rows, int64_t step) {
    if (from != std::exchange(from_, from))
      for (int64_t i = 0; i < rows; i++) Copy(from + i * step, step, copy_.get() + i * step_);
    return copy_.get();
  }
  int64_t Step() const { return step_; }

 private:
  // The processor would fetch each row too late by itself. Whole lines apart from the rest: GCC copies one of
  // at most so many bytes by a loop over words, which took 5 % of 128x3072x768.
  void Copy(const char* from, int64_t step, char* to) const {
    int64_t i = 0;
    for (; i + kLine <= bytes_; i += kLine) {
      __builtin_prefetch(from + i + 2 * step);
      std::memcpy(to + i, from + i, kLine);
    }
    std::memcpy(to + i, from + i, static_cast<size_t>(bytes_ - i));
  }
  int64_t bytes_, step_;
  Bytes copy_;
  const char* from_ = nullptr;
};

}  // namespace keel_cpu
