// joint.h: a body of a control op with its gradient, from which the backward body is extracted.
#pragma once

#include <memory>
#include <vector>

#include "kernel/program/grad/graph_sink.h"
#include "kernel/program/grad/request.h"

namespace keel {

// Appends nodes that compute the requested gradients to the graph of the sink: AppendGradient of gradient.h.
using GradientAppender = absl::StatusOr<std::vector<ValueId>> (*)(GraphSink& sink,
                                                                  const GradientRequest& wanted);

// A copy of a body, followed by its gradient; not in the module.
struct Joint {
  std::unique_ptr<Graph> graph;
  std::vector<ValueId> seeds, dxs;  // parameters for the cotangents of ys; gradients of xs
};
absl::StatusOr<Joint> Join(const Graph& body, const std::vector<bool>& ys, const std::vector<bool>& xs,
                           GradientAppender append);

}  // namespace keel
