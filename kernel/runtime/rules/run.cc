// run.cc: the loop over the rules of a pass.
#include <algorithm>

#include "kernel/runtime/rules/rules.h"

namespace keel::rules {

// A bound on the number of edits detects rules that undo each other.
absl::Status Run(const RulePass& pass, keel_edit* edit) {
  Rewriter& graph = *edit->rewriter;
  const std::string& device = graph.DeviceName();
  if (!pass.device.empty() && device.substr(0, device.find(':')) != pass.device) return absl::OkStatus();
  std::vector<NodeId> nodes;
  size_t left = 1000 + 64 * graph.Nodes().size();
  for (bool changed = true; changed;) {
    changed = false;
    nodes.assign(graph.Nodes().begin(), graph.Nodes().end());
    for (NodeId n : nodes) {
      const Node* node = graph.Find(n);
      if (!node) continue;
      auto first = std::lower_bound(pass.by_op.begin(), pass.by_op.end(), node->op,
                                    [](const auto& a, const OpDef* b) { return a.first < b; });
      if (first == pass.by_op.end() || first->first != node->op) continue;
      if (ValueId out = node->out[0]; !graph.Uses(out) && !graph.Fetched(out)) continue;  // unused
      for (auto rule = first; rule != pass.by_op.end() && rule->first == first->first; ++rule) {
        ASSIGN_OR_RETURN(Outcome outcome, Apply(*rule->second, edit, n));
        if (outcome == Outcome::kStop) return absl::OkStatus();
        if (outcome == Outcome::kNone) continue;
        changed = true;
        if (--left) break;
        return Internal("the rules of pass \"", pass.name, "\" do not terminate; the last rule was \"",
                        rule->second->name, "\": a rule's replacement must not match its pattern");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace keel::rules
