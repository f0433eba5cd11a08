// effects.h: what running a node does beside computing its results, summed up over the graphs that it runs.
// Effects happen in the order of the nodes; a plan keeps it, and nothing stores it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace keel {

struct Module;
struct Graph;
struct Node;

struct Effects {
  std::vector<uint32_t> reads, writes;  // variables of the module, ascending
  bool err = false, out = false;        // prints
  bool guard = false, rng = false, host = false;
  bool fails = false;  // may fail on its data: no effect, but what stands before it must have happened

  bool Must() const { return !writes.empty() || err || out || guard || host; }
  bool Any() const { return Must() || !reads.empty() || rng; }
  void Add(const Effects& other);
};
Effects EffectsOf(const Graph& graph, const Node& node);

// Quick answers. Any: it has an effect, so it keeps its place among others; Must: it runs where a whole
// function is asked for, though nobody needs its results; Ordered: Any, or it may fail.
bool HasAnyEffect(const Graph& graph, const Node& node);
bool MustRun(const Graph& graph, const Node& node);
bool IsOrdered(const Graph& graph, const Node& node);
// Does the node write a variable that the other one reads or writes?
bool Writes(const Graph& graph, const Node& node, const std::vector<uint32_t>& variables);

std::vector<uint32_t> MustRunNodes(const Graph& graph);
// "  reads w  writes w  prints err  may stop"; "" if there is nothing to say.
std::string Describe(const Module& module, const Effects& effects);

}  // namespace keel
