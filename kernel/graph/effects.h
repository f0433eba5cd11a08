// effects.h: side effects of nodes, including the effects of called graphs. Effects take place in the
// order of the nodes; plans preserve it. The order is not stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace keel {

struct Module;
struct Graph;
struct Node;

struct Effects {
  std::vector<uint32_t> reads, writes;  // indices of the module's variables, ascending
  bool err = false, out = false;        // prints to stderr, stdout
  bool guard = false, rng = false, host = false;
  bool fails = false;  // may fail on its data: not an effect, but effects before it must have taken place

  bool MustRun() const { return !writes.empty() || err || out || guard || host; }
  bool Any() const { return MustRun() || !reads.empty() || rng; }
  void Add(const Effects& other);
};
Effects EffectsOf(const Graph& graph, const Node& node);

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
