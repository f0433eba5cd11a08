// control.h: gradients of control ops. The backward body of each body takes the values of the forward run
// that it needs and the cotangents, recomputes the rest of the forward run, and computes the gradients.
//
// cond, switch: a node of the same op with the same index.
// scan: a scan in the reverse direction. A new forward node replaces the original; it also stacks the
// carried values of each iteration and the results of expensive ops (products, convolutions).
// while: nested scans, because stacking requires a known length; see WhileGradient.
#pragma once

#include <vector>

#include "kernel/grad/gradient.h"
#include "kernel/grad/node_writer.h"

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

// gradient.cc, like all functions up to Join. Append: Gradient without removal of unused graphs.
absl::StatusOr<std::vector<ValueId>> Append(GraphSink& sink, const GradientRequest& wanted);
// A transaction on a graph and its module: rolled back by the destructor, also when memory runs out, unless
// Commit is called.
class GraphTransaction {
 public:
  explicit GraphTransaction(Graph& graph)
      : sink(graph), module_(*graph.module), graphs_(graph.module->graphs.size()) {}
  GraphTransaction(const GraphTransaction&) = delete;
  GraphTransaction& operator=(const GraphTransaction&) = delete;
  ~GraphTransaction();
  void Commit();
  GraphSink sink;

 private:
  Module& module_;
  const size_t graphs_;
  bool done_ = false;
};
// Marks values that depend on marked values through floats and differentiable ops. through: see
// GradientRequest.
void MarkActive(const Graph& graph, NodeId first, NodeId last, std::vector<bool>* active,
                const std::vector<bool>* through = nullptr);
// A copy of a body, followed by its gradient; not in the module.
struct Joint {
  std::unique_ptr<Graph> graph;
  std::vector<ValueId> seeds, dxs;  // parameters for the cotangents of ys; gradients of xs
};
absl::StatusOr<Joint> Join(const Graph& body, const std::vector<bool>& ys, const std::vector<bool>& xs);

// Checks that the variables read by the last node, part of a gradient, are unchanged since the forward node.
absl::Status CheckReads(const Graph& graph, NodeId forward);

// The gradients of a cond or a switch. The node need not be in the graph.
absl::StatusOr<std::vector<ValueId>> BranchGradient(GraphSink& sink, const Node& node,
                                                    const std::vector<bool>& wanted,
                                                    const std::vector<ValueId>& cotangents);
// while.cc
absl::StatusOr<std::vector<ValueId>> WhileGradient(GraphSink& sink, const ControlNode& node);

}  // namespace keel
