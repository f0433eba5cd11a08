// sub_buffers.h: values that are contiguous sub-buffers of others, so that no copy is needed: results of
// slice and split, operands of concat.
#pragma once

#include <vector>

#include "kernel/plan/binding.h"

namespace keel {

struct SubBuffers {
  std::vector<uint32_t> whole;   // by value: the value that contains it, or kNoValue; empty: no parts
  std::vector<uint64_t> offset;  // in bytes
  std::vector<bool> is_noop;     // by step

  // The outermost value whose memory contains `root`, and the offset in it.
  uint32_t Whole(uint32_t root, uint64_t* at = nullptr) const {
    while (!whole.empty() && whole[root] != kNoValue) {
      if (at) *at += offset[root];
      root = whole[root];
    }
    return root;
  }
  bool IsPart(uint32_t root) const { return !whole.empty() && whole[root] != kNoValue; }
};

// `binding`: shapes are set. `storage`: set for feeds, constants, results and variables, which are `placed`.
SubBuffers FindSubBuffers(const Lowered& lowered, const Binding& binding, const std::vector<Storage>& storage,
                          const std::vector<bool>& placed);

}  // namespace keel
