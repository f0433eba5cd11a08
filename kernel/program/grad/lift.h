// lift.h: replaces constants in bodies of control ops by operands, because gradients flow to operands only.
#pragma once

#include <span>

#include "kernel/language/graph/graph.h"

namespace keel {

// For each cond, switch, while and scan of the graph whose bodies contain one of these constants, at any
// depth: passes the constant as an operand, with changed copies of the bodies. Values and nodes keep their
// ids. An error leaves the graph unchanged.
absl::Status LiftConstants(Graph& graph, std::span<const ValueId> constants);

}  // namespace keel
