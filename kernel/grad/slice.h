// slice.h: graphs made of parts of others: the bodies that gradients of control flow run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernel/graph/graph.h"

namespace keel {

// An empty graph of the module whose name begins with the stem.
absl::StatusOr<Graph*> NewGraph(Module& module, std::string_view stem);

// No graph of the module; it may grow.
std::unique_ptr<Graph> CopyOf(const Graph& graph);

// Which effects come along: those of all nodes that must run, or none: what is computed a second time neither
// prints nor writes again.
enum class Keep : uint8_t { kEffects, kNone };

// A new graph that gives `results` from `params`, values of `from` where it begins; gives its number. Types
// and names stay. Unimplemented: without effects a result cannot be had.
absl::StatusOr<uint32_t> Cut(const Graph& from, std::span<const ValueId> params,
                             std::span<const ValueId> results, Keep keep, std::string_view stem);
// The graph, or a copy that does nothing beside computing.
absl::StatusOr<uint32_t> Quiet(Module& module, uint32_t graph);

// By value: is it a result, or read on the way from params to results?
std::vector<bool> ReadBetween(const Graph& from, std::span<const ValueId> params,
                              std::span<const ValueId> results);

// The attributes with other graphs, in the order of BodiesOf.
Attrs WithBodies(const OpDef& op, const Attrs& attrs, std::span<const uint32_t> bodies);

}  // namespace keel
