// key.h: the cache key of a call: the structure and the leaves of its arguments. An array contributes dtype
// and shape, a value of the host language (a static leaf) type and value, so that 2, 2.0 and true differ.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/keel_function.h"
#include "absl/container/inlined_vector.h"
#include "kernel/language/values/array.h"

namespace keel {

// Append the bytes of a number, and of a list with its length, to the key of a cache.
template <typename T>
void AppendBytes(std::string* key, const T& number) {
  key->append(reinterpret_cast<const char*>(&number), sizeof number);
}
inline void AppendList(std::string* key, const std::vector<uint32_t>& numbers) {
  AppendBytes(key, numbers.size());
  key->append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(uint32_t));
}

using LeafDims = absl::InlinedVector<int64_t, 16>;  // of all array leaves, concatenated

// The arguments of one call; borrowed.
struct Arguments {
  std::string_view structure;
  std::span<const keel_leaf> leaves;
  size_t room = SIZE_MAX;  // capacity for results

  using Arrays = absl::InlinedVector<keel_array*, 8>;
  Arrays OnlyArrays() const {
    Arrays arrays;
    for (const keel_leaf& leaf : leaves)
      if (leaf.kind == KEEL_LEAF_ARRAY) arrays.push_back(leaf.array);
    return arrays;
  }
  // Errors name the leaf: unknown kind, null array or null string. Sets *symbolic if an array is symbolic.
  absl::Status Check(bool* symbolic) const;
  // Appends array sizes to `dims` and everything else to `kind`.
  void Key(std::string* kind, LeafDims* dims) const;
  std::string NameOf(size_t leaf) const;     // its name, or "argument 2"
  std::string ParamName(size_t leaf) const;  // its name, or "x2"
  std::string Describe(size_t leaf) const;   // "f32[3, 4]", "i64 2", "str \"a\"", "none"
};

// A copy of a call's arguments; later arguments are compared with it without building a key.
class KeptArguments {
 public:
  explicit KeptArguments(const Arguments&);
  // Whether the keys are equal. Equal arguments are also well-formed and concrete.
  bool Same(const Arguments&) const;

 private:
  struct Leaf {
    keel_leaf leaf;
    std::string text;
    DType dtype;
    int32_t rank;
  };
  std::string structure_;
  std::vector<Leaf> leaves_;
  LeafDims dims_;
};

}  // namespace keel
