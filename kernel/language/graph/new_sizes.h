// new_sizes.h: sizes that only a run knows (SizeAttr). A node that mentions such a symbol in an attribute
// depends on the node that makes the size, although no operand shows it.
#pragma once

#include "absl/functional/function_ref.h"
#include "kernel/language/graph/graph.h"

namespace keel {

class NewSizes {
 public:
  explicit NewSizes(const Graph& graph);
  // Calls f with each value whose first dim is a size that the node, or a body of it, mentions in an
  // attribute.
  void ForEach(const Node& node, absl::FunctionRef<void(ValueId)> f) const;

 private:
  const Graph& graph_;
  HashMap<size_t, ValueId> makers_;  // by symbol
};

}  // namespace keel
