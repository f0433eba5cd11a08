// control.h: gradients of the nodes that run graphs. Each body becomes one that is given what it needs of the
// forward run and the cotangents, computes the rest of the forward run again, and goes back through it.
//
// cond, switch: a node of the same op on the same index.
// scan: a scan the other way round. What is carried at each step, and results of ops that are dear (products,
// convolutions), the forward node keeps: it is replaced by one that stacks them as well.
// while: as scans inside each other, because a stack needs a length; see WhileBack.
#pragma once

#include <vector>

#include "kernel/grad/gradient.h"
#include "kernel/grad/pen.h"

namespace keel {

// A node, the operands whose gradients are wanted, and what arrived at its results (kNoValue: nothing).
struct ControlNode {
  NodeId node;
  const Node& was;  // a copy: the graph grows
  std::vector<bool> wanted;
  std::vector<ValueId> cotangents;
};
// The gradient of each operand, kNoValue where it is not wanted. Unimplemented: a body reads a variable that
// is written afterwards.
absl::StatusOr<std::vector<ValueId>> ControlBack(GraphSink& sink, const ControlNode& node);

// gradient.cc, as all up to Join: Gradient without the clearing up.
absl::StatusOr<std::vector<ValueId>> Append(GraphSink& sink, const GradientWanted& wanted);
// What is done to a graph and its module; taken back, also where memory runs out, unless it is kept.
class Change {
 public:
  explicit Change(Graph& graph) : sink(graph), module_(*graph.module), graphs_(graph.module->graphs.size()) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change();
  void Keep();
  GraphSink sink;

 private:
  Module& module_;
  const size_t graphs_;
  bool done_ = false;
};
// Marks what depends on what is marked along floats and ops that let gradients through. through: of
// GradientWanted.
void MarkActive(const Graph& graph, NodeId first, NodeId last, std::vector<bool>* active,
                const std::vector<bool>* through = nullptr);
// A copy of a body with its gradient behind it; no graph of the module.
struct Joint {
  std::unique_ptr<Graph> graph;
  std::vector<ValueId> seeds, dxs;  // parameters for the cotangents of ys; gradients of xs
};
absl::StatusOr<Joint> Join(const Graph& body, const std::vector<bool>& ys, const std::vector<bool>& xs);

// Is what the last node of the graph reads, a part of a gradient, still what the forward node read?
absl::Status CheckReads(const Graph& graph, NodeId forward);

// The gradients of a cond or a switch, which need not be in the graph.
absl::StatusOr<std::vector<ValueId>> BranchBack(GraphSink& sink, const Node& node,
                                                const std::vector<bool>& wanted,
                                                const std::vector<ValueId>& cotangents);
// while.cc
absl::StatusOr<std::vector<ValueId>> WhileBack(GraphSink& sink, const ControlNode& node);

}  // namespace keel
