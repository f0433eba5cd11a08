// key.h: what a call of a function is known by: the structure and leaves of its arguments. Arrays count by
// dtype and shape, values of the program (static leaves) by type and value, so that 2, 2.0 and true differ.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/keel_function.h"
#include "absl/container/inlined_vector.h"
#include "kernel/values/array.h"

namespace keel {

class KeyBytes {
 public:
  void Add(const void* bytes, size_t n) {
    if (more_.empty() && size_ + n <= sizeof room_) {
      std::memcpy(room_ + size_, bytes, n);
    } else {
      if (more_.empty()) more_.assign(room_, size_);
      more_.append(static_cast<const char*>(bytes), n);
    }
    size_ += n;
  }
  std::string_view view() const { return more_.empty() ? std::string_view(room_, size_) : more_; }

 private:
  char room_[256];
  size_t size_ = 0;
  std::string more_;  // where there is no room
};
using LeafDims = absl::InlinedVector<int64_t, 16>;  // of all array leaves, one after the other

// The arguments of one call; borrowed.
struct Arguments {
  std::string_view structure;
  std::span<const keel_leaf> leaves;
  size_t room = SIZE_MAX;  // for results

  using Arrays = absl::InlinedVector<keel_array*, 8>;
  Arrays OnlyArrays() const {
    Arrays arrays;
    for (const keel_leaf& leaf : leaves)
      if (leaf.kind == KEEL_LEAF_ARRAY) arrays.push_back(leaf.array);
    return arrays;
  }
  // Errors name the leaf: an unknown kind, an array or a text that is missing. symbolic: is one of the
  // arrays?
  absl::Status Check(bool* symbolic) const;
  absl::Status NoRoom(size_t results) const;  // the error if there are more than `room`
  // Everything but the sizes of arrays goes into `kind`, the sizes into `dims`.
  void Key(KeyBytes* kind, LeafDims* dims) const;
  std::string NameOf(size_t leaf) const;     // its name, or "argument 2"
  std::string ParamName(size_t leaf) const;  // its name, or "x2"
  std::string Describe(size_t leaf) const;   // "f32[3, 4]", "i64 2", "str \"a\"", "none"
};

// The arguments of a call, kept so that those of later calls can be compared with them where they lie.
class KeptArguments {
 public:
  explicit KeptArguments(const Arguments&);
  // Whether they have the same key; then they are well-formed and concrete, too.
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
