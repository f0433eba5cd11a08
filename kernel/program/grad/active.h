// active.h: the values that a gradient passes.
#pragma once

#include <vector>

#include "kernel/language/graph/graph.h"

namespace keel {

// Whether an operand of the node is marked.
bool AnyActive(const Node& node, const std::vector<bool>& active);
// Marks values that depend on marked values through floats and differentiable ops. through: see
// GradientRequest.
void MarkActive(const Graph& graph, NodeId first, NodeId last, std::vector<bool>* active,
                const std::vector<bool>* through = nullptr);

}  // namespace keel
