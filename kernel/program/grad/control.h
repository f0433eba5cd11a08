// control.h: gradients of control ops. The backward body of each body takes the values of the forward run
// that it needs and the cotangents, recomputes the rest of the forward run, and computes the gradients.
//
// cond, switch: a node of the same op with the same index.
// scan: a scan in the reverse direction. A new forward node replaces the original; it also stacks the
// carried values of each iteration and the results of expensive ops (products, convolutions).
// while: nested scans, because stacking requires a known length; see WhileGradient.
//
// Bodies may contain control ops, whose gradients are gradients of bodies.
#pragma once

#include <vector>

#include "kernel/program/grad/node_writer.h"

namespace keel {

// A node, the operands whose gradients are wanted, and the cotangents of its results (kNoValue: none).
struct ControlNode {
  NodeId node;
  const Node& original;  // a copy, because the graph grows
  std::vector<bool> wanted;
  std::vector<ValueId> cotangents;
};
// The gradient of each operand, kNoValue if not wanted. Unimplemented: a body reads a variable that is
// written afterwards.
absl::StatusOr<std::vector<ValueId>> ControlGradient(GraphSink& sink, const ControlNode& node);

// Checks that the variables read by the last node, part of a gradient, are unchanged since the forward node.
absl::Status CheckReads(const Graph& graph, NodeId forward);

// The gradients of a cond or a switch. The node need not be in the graph.
absl::StatusOr<std::vector<ValueId>> BranchGradient(GraphSink& sink, const Node& node,
                                                    const std::vector<bool>& wanted,
                                                    const std::vector<ValueId>& cotangents);
// while.cc
absl::StatusOr<std::vector<ValueId>> WhileGradient(GraphSink& sink, const ControlNode& node);

}  // namespace keel
