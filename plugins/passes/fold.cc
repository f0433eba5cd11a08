// fold.cc: nodes whose operands are all constants are computed now, on the device that would run them.
//
// A node that fails on its data (an index out of range) stays and fails in the run, if the run gets
// there. Nodes that only spread a value over more memory stay too: their users read it as it is.
#include <algorithm>

#include "passes.h"

namespace keel_passes {
namespace {

constexpr int64_t kSpread = 1024;  // elements up to which a value is spread

bool spreads(std::string_view op) {
  constexpr std::string_view kOps[] = {"fill", "broadcast_to", "tile", "iota", "one_hot", "random"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool foldable(const Edit& e, NodeId n) {
  if (e.outs(n).empty()) return false;  // it runs for its effect
  for (keel_value v : e.ins(n))
    if (v != KEEL_NO_VALUE && !e.constant(v)) return false;
  const int64_t count = e.type(e.out(n)).count();
  return count >= 0 && (count <= kSpread || !spreads(e.op(n)));
}

}  // namespace

void fold(Edit& e) {
  for (NodeId n : e.nodes())
    if (e.alive(n) && foldable(e, n)) e.eval(n);
}

}  // namespace keel_passes
