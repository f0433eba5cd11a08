// taped.h: what a tape can record: an op with its attributes, or a graph that was called as one.
#pragma once

#include <memory>
#include <vector>

#include "kernel/graph/graph.h"

namespace keel {

struct Taped {
  // The elements that the gradient of one operand reads: bit i is operand or result i. Those from 63 on
  // share the last bit.
  struct Reads {
    uint64_t in = 0, out = 0;
  };
  static uint64_t Bit(size_t i) { return uint64_t{1} << (i < 63 ? i : 63); }

  static std::shared_ptr<const Taped> Of(const OpDef& op, Attrs attrs);
  // The graph from feeds to fetches; a call's results are computed again for a gradient.
  static std::shared_ptr<const Taped> Of(std::shared_ptr<const Module> owner, const Graph* graph,
                                         std::vector<ValueId> feeds, std::vector<ValueId> fetches);

  bool differentiable = true;  // else nothing that it gives depends on what it takes
  const Reads& ReadsOf(size_t operand) const {
    return reads[operand < reads.size() ? operand : reads.size() - 1];
  }
  // Whether two graphs compute the same from what they are fed.
  static bool SameGraphs(const Taped& a, const Taped& b);
  // Writes it to the end of a graph; gives its results. Operands may be kNoValue.
  absl::StatusOr<std::vector<ValueId>> Write(Graph* to, std::vector<ValueId> operands) const;

  const OpDef* op = nullptr;  // null: a graph
  Attrs attrs;
  std::shared_ptr<const Module> owner;
  const Graph* graph = nullptr;
  std::vector<ValueId> feeds, fetches;
  std::vector<Reads> reads;  // by operand; the last one is of all others
};

}  // namespace keel
