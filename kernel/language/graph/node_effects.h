// node_effects.h: side effects of nodes, including the effects of called graphs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/language/graph/graph.h"

namespace keel {

// Fast predicates. HasAnyEffect: keeps its position among others. MustRun: runs even if its results are
// unused. IsOrdered: has an effect or may fail.
bool HasAnyEffect(const Graph& graph, const Node& node);
bool MustRun(const Graph& graph, const Node& node);
bool IsOrdered(const Graph& graph, const Node& node);
// Whether the node writes one of these variables.
bool Writes(const Graph& graph, const Node& node, const std::vector<uint32_t>& variables);

std::vector<uint32_t> MustRunNodes(const Graph& graph);
// "  reads w  writes w  prints err  may stop"; "" without effects.
std::string Describe(const Module& module, const Effects& effects);

}  // namespace keel
