// slice.h: graphs extracted from others: the bodies used by gradients of control ops.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernel/language/graph/graph.h"

namespace keel {

// A copy outside the module, which may grow.
std::unique_ptr<Graph> CopyGraph(const Graph& graph);

// Effects in the extracted graph: all effects, or none, because a recomputation must not print or write
// again.
enum class Keep : uint8_t { kEffects, kNone };

// Extracts a new graph that computes `results` from `params`, values of `from`; returns its index. Types and
// names are preserved. Unimplemented: with kNone, a result depends on an effect.
absl::StatusOr<uint32_t> ExtractGraph(const Graph& from, std::span<const ValueId> params,
                                      std::span<const ValueId> results, Keep keep, std::string_view stem);
// The graph, or a copy without effects.
absl::StatusOr<uint32_t> WithoutEffects(Module& module, uint32_t graph);

// By value: whether it is a result, or read between params and results.
std::vector<bool> ReadBetween(const Graph& from, std::span<const ValueId> params,
                              std::span<const ValueId> results);

// The attributes with other graphs, in the order of BodiesOf.
Attrs WithBodies(const OpDef& op, const Attrs& attrs, std::span<const uint32_t> bodies);

}  // namespace keel
