// sort_loops.cc: sort_loops.inc for each SIMD level.
#include "plugins/cpu/reduce/sort_loops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/reduce/sort_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

int64_t SortRoom(int64_t n) {
  constexpr int64_t kLargestBlock = 128, kVector = 8;                        // of all levels
  return (n + kLargestBlock - 1) / kLargestBlock * kLargestBlock + kVector;  // the head after a run is read
}

const SortLoop& FindSort() { return *KEEL_PICK(kSort); }

}  // namespace keel_cpu
