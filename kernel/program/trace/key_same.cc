// key_same.cc: the hot part of key.h: comparison of a call with an earlier one.
#include "kernel/program/trace/key.h"

namespace keel {
namespace {

// a and b have the same kind. Unknown kinds never match: such calls take the slow path, which reports them.
bool SameStatic(const keel_leaf& a, const keel_leaf& b, const std::string& text) {
  switch (a.kind) {
    case KEEL_LEAF_NONE:
      return true;
    case KEEL_LEAF_BOOL:
      return !a.i == !b.i;
    case KEEL_LEAF_I64:
      return a.i == b.i;
    case KEEL_LEAF_F64:
      return !std::memcmp(&a.f, &b.f, sizeof a.f);
    case KEEL_LEAF_STR:
      return a.s && text == a.s;
    default:
      return false;
  }
}

}  // namespace

bool KeptArguments::Same(const Arguments& arguments) const {
  if (arguments.leaves.size() != leaves_.size() || arguments.structure != structure_) return false;
  const int64_t* dims = dims_.data();
  for (size_t i = 0; i < leaves_.size(); i++) {
    const keel_leaf& leaf = arguments.leaves[i];
    const Leaf& kept = leaves_[i];
    if (leaf.kind != kept.leaf.kind) return false;
    if (leaf.kind == KEEL_LEAF_ARRAY) [[likely]] {
      const keel_array* a = leaf.array;
      if (!a || a->symbolic() || a->dtype != kept.dtype || a->view.ndim != kept.rank) return false;
      for (int32_t d = 0; d < kept.rank; d++)
        if (a->dims[d] != *dims++) return false;
    } else if (!SameStatic(leaf, kept.leaf, kept.text)) {
      return false;
    }
  }
  return true;
}

}  // namespace keel
