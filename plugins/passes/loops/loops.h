// loops.h: a `while` or `scan` as the rules of the pass `loop` see it, and rebuilding loops with fewer
// operands.
#pragma once
#include <optional>

#include "plugins/passes/edit/edit.h"

namespace keel_passes {

// Operands are the carried values, captures, scanned tensors (scan), and the length (a counted scan). The
// graphs receive the first three. Results are the carried values, then the stacked ones.
struct Loop {
  Loop(const Edit& e, NodeId node);
  NodeId n;
  bool is_while;
  bool counted = false;
  size_t carry, given, cut;  // numbers of carried operands and of operands passed to the graphs; index of the
                             // first scanned operand
  int64_t body, test = -1;
  Ids in, out;
  bool pure;  // without effects, so it may be rebuilt
};

// A graph applied to values: a `cond` whose condition is true. After the uses of its results are redirected,
// inline_graph replaces it by the nodes of the graph.
struct InlinedGraph {
  NodeId node;
  Ids out;
};
InlinedGraph apply_graph(Edit& e, int64_t graph, const Ids& in, size_t results);
void inline_graph(Edit& e, const InlinedGraph& inlined, int64_t graph, const Ids& in);

// The value of a scalar of a body, computed from the known values of its parameters.
using Numbers = std::vector<std::optional<double>>;
std::optional<double> number_of(const Edit::Body& body, keel_value v, const Numbers& params, int depth = 0);

}  // namespace keel_passes
