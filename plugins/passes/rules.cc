// rules.cc: the driver of peephole rules.
#include <unordered_map>

#include "plugins/passes/passes.h"

namespace keel_passes {

namespace {

// A refusal by the host (an undecidable check of symbolic dims, say) is not an edit.
bool applied(bool (*rule)(Edit&, NodeId), Edit& e, NodeId n) {
  try {
    return rule(e, n);
  } catch (const Failure& f) {
    if (f.rc == KEEL_INVALID || f.rc == KEEL_PRECONDITION) return false;
    throw;
  }
}

}  // namespace

// Each rule shrinks the graph or moves it towards a normal form, so this terminates; the bound guards against
// faulty rules.
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
        if (!e.alive(n)) break;  // a declining rule may have added and removed nodes
        if (!applied(rule, e, n)) continue;
        changed = true;
        break;
      }
    }
  }
}

}  // namespace keel_passes
