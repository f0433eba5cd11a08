// inside.h: values that are contiguous parts of others, so that nobody need copy them: what a slice or split
// gives, and what a concatenation is given.
#pragma once

#include <vector>

#include "kernel/plan/binding.h"

namespace keel {

struct Inside {
  std::vector<uint32_t> whole;   // by value: what it is a part of; kNoValue: of nothing. Empty: no value is
  std::vector<uint64_t> offset;  // in bytes
  std::vector<bool> still;       // by step: it has nothing to do

  // The value whose memory holds this one (which is a root), and where in it.
  uint32_t Whole(uint32_t root, uint64_t* at = nullptr) const {
    while (!whole.empty() && whole[root] != kNoValue) {
      if (at) *at += offset[root];
      root = whole[root];
    }
    return root;
  }
  bool IsPart(uint32_t root) const { return !whole.empty() && whole[root] != kNoValue; }
};

// `binding`: shapes are set. storage: of feeds, constants, results and variables, which have their place
// already (`placed`).
Inside FindInside(const Lowered& lowered, const Binding& binding, const std::vector<Storage>& storage,
                  const std::vector<bool>& placed);

}  // namespace keel
