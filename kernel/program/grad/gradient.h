// gradient.h: reverse-mode gradients: appends nodes that compute the gradients to the graph.
//
// From the last node to the first, each node between an x and a y propagates the cotangents of its results to
// its operands by its op's gradient rule; contributions to the same value are added. The appended nodes are
// ordinary ops, so they can be differentiated again.
#pragma once

#include <span>
#include <vector>

#include "kernel/program/grad/request.h"

namespace keel {

// One value per x, of its type. Time and number of nodes are linear in the nodes between xs and ys. An error
// leaves the graph unchanged: a y that is not a float, a seed of another type, an op without a rule
// (NotFound).
absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const GradientRequest& wanted);

// The derivatives of each element of y with respect to each element of x; dims: dims of y, then dims of x.
// Computes one gradient per element of y, in a scan. zeros, through: see GradientRequest.
absl::StatusOr<ValueId> Jacobian(Graph& graph, ValueId y, ValueId x, bool zeros = true,
                                 const std::vector<bool>* through = nullptr);

}  // namespace keel
