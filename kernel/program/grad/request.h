// request.h: a request for gradients in a graph. Gradients of control ops are gradients of their bodies, so
// gradient.h and control.h call each other through AppendGradient.
#pragma once

#include <span>
#include <vector>

#include "kernel/language/graph/graph_sink.h"

namespace keel {

struct GradientRequest {
  std::span<const ValueId> ys;                 // floats; the gradient is that of their sum
  std::span<const ValueId> seeds;              // empty, or one per y, of its type; kNoValue: ones
  std::span<const ValueId> xs;                 // any values: parameters, constants, results
  bool zeros = false;                          // zeros instead of kNoValue if no y depends on an x
  const std::vector<bool>* through = nullptr;  // by node: whether gradients flow through it; null: all
};

// Gradient of gradient.h without removal of unused graphs; an error leaves appended nodes.
absl::StatusOr<std::vector<ValueId>> AppendGradient(GraphSink& sink, const GradientRequest& wanted);

}  // namespace keel
