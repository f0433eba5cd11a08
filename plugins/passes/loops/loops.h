// loops.h: a `while` or `scan` as the rules of `loop` see it, and loops made anew with less in them.
#pragma once
#include <optional>

#include "plugins/passes/edit/edit.h"

namespace keel_passes {

// Operands are what is carried, what is captured, what is gone over entry by entry (scan), and how many of
// these (a counted scan). The graphs are given the first three. Results: what is carried, then what is
// stacked.
struct Loop {
  Loop(const Edit& e, NodeId node);
  NodeId n;
  bool is_while;
  bool counted = false;
  size_t carry, given, cut;  // operands: carried; that the graphs are given; the first that is gone over
  int64_t body, test = -1;
  Ids in, out;
  bool pure;  // it has no effects, so that it can be made anew
};

// The graph `graph` on these values in place of a node to come: a `cond` whose condition is true. Once what
// it gives is used, written_out puts the nodes of the graph there.
struct Placed {
  NodeId node;
  Ids out;
};
Placed place(Edit& e, int64_t graph, const Ids& in, size_t results);
void written_out(Edit& e, const Placed& placed, int64_t graph, const Ids& in);

// The number that a scalar of a body is, where those of its parameters are known.
using Numbers = std::vector<std::optional<double>>;
std::optional<double> number_of(const Edit::Body& body, keel_value v, const Numbers& params, int depth = 0);

}  // namespace keel_passes
