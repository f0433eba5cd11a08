// new_sizes.cc: see new_sizes.h.
#include "kernel/language/graph/new_sizes.h"

#include <algorithm>

namespace keel {

NewSizes::NewSizes(const Graph& graph) : graph_(graph) {
  if (!graph.new_sizes) return;
  for (const Node& node : graph.nodes)
    if (std::optional<size_t> symbol = NewSizeOf(node, graph.module->dims)) makers_[*symbol] = node.out[0];
}

void NewSizes::ForEach(const Node& node, absl::FunctionRef<void(ValueId)> f) const {
  if (makers_.empty()) return;
  std::vector<size_t> symbols;
  for (const Attr& a : node.attrs) {
    if (a.value.kind == KEEL_ATTR_DIM) graph_.module->dims.Symbols(a.value.i, &symbols);
    if (a.value.kind == KEEL_ATTR_DIMS)
      for (Dim d : a.value.list) graph_.module->dims.Symbols(d, &symbols);
  }
  for (size_t s : symbols)
    if (auto maker = makers_.find(s);
        maker != makers_.end() && (node.out.empty() || maker->second != node.out[0]))
      f(maker->second);
  for (uint32_t body : BodiesOf(node.attrs))
    for (const Node& inner : graph_.module->graphs[body]->nodes) ForEach(inner, f);
}

}  // namespace keel
