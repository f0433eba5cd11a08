// gradient.h: gradients as graphs: appends to a graph the nodes that compute how its values depend on others.
//
// How it works: from the last node back to the first, each node that lies between an x and a y sends the
// cotangents of its results to its operands, by its op's vjp rule; what arrives at one value is added up.
// The nodes that it appends are ops of the catalogue like any others, so their gradients exist too.
#pragma once

#include <span>
#include <vector>

#include "kernel/graph/graph.h"

namespace keel {

struct GradientWanted {
  std::span<const ValueId> ys;                 // floats; their sum is what is differentiated
  std::span<const ValueId> seeds;              // empty, or one for each y, of its type; kNoValue: ones
  std::span<const ValueId> xs;                 // any values: parameters, constants, results of nodes
  bool zeros = false;                          // where no y depends on an x: zeros instead of kNoValue
  const std::vector<bool>* through = nullptr;  // by node: gradients go through no others; null: through all
};

// One value for each x, of its type. Time and nodes grow with the nodes between xs and ys. An error leaves
// the graph as it was: a y that is no float, a seed of another type, an op without a rule (NotFound).
absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const GradientWanted& wanted);

// The derivatives of each element of y with respect to each element of x: the dims of y, then those of x. One
// gradient for each element of y, in a scan. zeros, through: of GradientWanted.
absl::StatusOr<ValueId> Jacobian(Graph& graph, ValueId y, ValueId x, bool zeros = true,
                                 const std::vector<bool>* through = nullptr);

}  // namespace keel
