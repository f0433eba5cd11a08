// hash.h: hash tables that remain valid when an allocation fails. (Abseil's modify themselves before they
// allocate and are corrupt if that throws.) String keys can be looked up by string_view.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"

namespace keel {

struct KeyHash {
  using is_transparent = void;
  template <typename Key>
  size_t operator()(const Key& key) const {
    return absl::Hash<Key>()(key);
  }
};

template <typename Key, typename Value>
using HashMap = std::unordered_map<Key, Value, KeyHash, std::equal_to<>>;
template <typename Key>
using HashSet = std::unordered_set<Key, KeyHash, std::equal_to<>>;

}  // namespace keel
