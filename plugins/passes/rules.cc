// rules.cc: the loop over peephole rules.
#include <unordered_map>

#include "plugins/passes/passes.h"

namespace keel_passes {

namespace {

// What the host refuses (a check on symbolic dims that it cannot decide, say) is no edit.
bool applied(bool (*rule)(Edit&, NodeId), Edit& e, NodeId n) {
  try {
    return rule(e, n);
  } catch (const Failure& f) {
    if (f.rc == KEEL_INVALID || f.rc == KEEL_PRECONDITION) return false;
    throw;
  }
}

}  // namespace

// Each rule makes the graph smaller or moves it one step towards its normal form, so this ends; the
// bound is for rules that are wrong.
void apply(Edit& e, std::initializer_list<Rules> lists) {
  constexpr int kMostRounds = 64;
  std::unordered_map<std::string_view, std::vector<bool (*)(Edit&, NodeId)>> by_op;
  for (Rules rules : lists)
    for (const Rule& rule : rules) by_op[rule.op].push_back(rule.apply);
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; round++) {
    changed = false;
    for (NodeId n : e.nodes()) {
      if (!e.alive(n)) continue;
      const auto found = by_op.find(e.op(n));
      if (found == by_op.end()) continue;
      for (auto* rule : found->second) {
        if (!e.alive(n)) break;  // one that says no may have taken a part of what it makes
        if (!applied(rule, e, n)) continue;
        changed = true;
        break;
      }
    }
  }
}

}  // namespace keel_passes
