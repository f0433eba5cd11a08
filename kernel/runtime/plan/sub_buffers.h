// sub_buffers.h: finds values that are contiguous parts of other values, so that their step need not copy:
// results of slice and split, and operands of concat.
#pragma once

#include <vector>

#include "kernel/runtime/plan/binding.h"

namespace keel {

struct SubBuffers {
  std::vector<uint32_t> whole;   // by value: the value that contains it, or kNoValue; empty: no parts exist
  std::vector<uint64_t> offset;  // by value: bytes from the start of `whole`
  std::vector<bool> is_noop;     // by step: all its results are in place, so that it does nothing

  // The outermost value that contains `root`, which must be a root; adds the offset within it to *at.
  uint32_t Whole(uint32_t root, uint64_t* at = nullptr) const {
    while (!whole.empty() && whole[root] != kNoValue) {
      if (at) *at += offset[root];
      root = whole[root];
    }
    return root;
  }
  bool IsPart(uint32_t root) const { return !whole.empty() && whole[root] != kNoValue; }
};

// Requires the shapes of `binding` to be set, and `storage` of the values that are already `placed`: feeds,
// constants, results and variables.
SubBuffers FindSubBuffers(const Lowered& lowered, const Binding& binding, const std::vector<Storage>& storage,
                          const std::vector<bool>& placed);

}  // namespace keel
