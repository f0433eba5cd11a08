// walk.h: walks of packed trees.
#pragma once

#include <algorithm>
#include <limits>

#include "plugins/cpu/trees/forest.h"

namespace keel_cpu {

// Steps after which a walk looks whether all lanes are at leaves.
inline constexpr uint32_t kStepsAtOnce = 6;

// kLanes walks at once, so that the processor loads for one while it waits for another: of one tree for all
// rows of a block, or (kOneRow) of several trees for the row that is at `block`. `at`: from the roots to the
// leaves, of which the farthest is `depth` steps away.
template <bool kOneRow, class T, class U>
void Walk(const PackedNode<T, U>** at, const T* block, uint32_t depth) {
  const PackedNode<T, U>* n[kLanes];
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; i++) n[i] = at[i];
  for (uint32_t d = 0, stop = 0;;) {
    for (stop = std::min(depth, stop + kStepsAtOnce); d < stop; d++) {
#pragma GCC unroll 8
      for (int i = 0; i < kLanes; i++)
        n[i] += n[i]->step + static_cast<size_t>((kOneRow ? block : block + i)[n[i]->column] <= n[i]->split);
    }
    if (d == depth) break;
    U any = 0;
#pragma GCC unroll 8
    for (int i = 0; i < kLanes; i++) any = static_cast<U>(any | n[i]->step);
    if (any == 0) break;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; i++) at[i] = n[i];
}

}  // namespace keel_cpu
