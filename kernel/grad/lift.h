// lift.h: constants that bodies of control flow hold, as operands of the nodes that run them: gradients find
// operands only.
#pragma once

#include <span>

#include "kernel/graph/graph.h"

namespace keel {

// Each cond, switch, while and scan of the graph whose bodies hold one of these constants, at whatever depth,
// is given it as an operand, and other bodies. Values and nodes keep their numbers. An error leaves the graph
// as it was.
absl::Status LiftConstants(Graph& graph, std::span<const ValueId> constants);

}  // namespace keel
