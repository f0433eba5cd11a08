// taped.h: an entry type of tapes: an op with its attributes, or a called graph.
#pragma once

#include <memory>
#include <vector>

#include "kernel/language/graph/graph.h"

namespace keel {

struct Taped {
  // The elements that the gradient of one operand reads: bit i is operand or result i; all from 63 on share
  // the last bit.
  struct Reads {
    uint64_t in = 0, out = 0;
  };
  static uint64_t Bit(size_t i) { return uint64_t{1} << (i < 63 ? i : 63); }

  static std::shared_ptr<const Taped> Of(const OpDef& op, Attrs attrs);
  // The graph from feeds to fetches; its gradient recomputes the results of the call.
  static std::shared_ptr<const Taped> Of(std::shared_ptr<const Module> owner, const Graph* graph,
                                         std::vector<ValueId> feeds, std::vector<ValueId> fetches);

  bool differentiable = true;  // false: gradients do not pass
  const Reads& ReadsOf(size_t operand) const {
    return reads[operand < reads.size() ? operand : reads.size() - 1];
  }
  // Whether two graphs compute the same results from the same feeds.
  static bool SameGraphs(const Taped& a, const Taped& b);
  // Appends it to a graph and returns its results. Operands may be kNoValue.
  absl::StatusOr<std::vector<ValueId>> Write(Graph* to, std::vector<ValueId> operands) const;
  absl::Status CheckResultSizes() const;  // of a graph: known before a run

  const OpDef* op = nullptr;  // null for a graph
  Attrs attrs;
  std::shared_ptr<const Module> owner;
  const Graph* graph = nullptr;
  std::vector<ValueId> feeds, fetches;
  std::vector<Reads> reads;  // by operand; the last entry applies to all further operands
};

}  // namespace keel
