// flatten.h: a graph for a plugin that saves it in another format: without calls, and with the bodies of the
// ops that the format lacks.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "kernel/language/graph/graph.h"
#include "kernel/runtime/plugin/node.h"

namespace keel {

struct Flat {
  std::shared_ptr<Module> module;  // shares the constants of the original
  const Graph* graph;
};
// whole: ops with a body that stay, blanks between; keeps: whether a node of one of them does. Variables that
// the graph never writes become constants of their present values. Keeps nodes that the results or effects
// need.
absl::StatusOr<Flat> Flatten(const Graph& graph, std::string_view whole,
                             const std::function<bool(const keel_node&)>& keeps);

}  // namespace keel
