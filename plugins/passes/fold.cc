// fold.cc: nodes whose operands are all constants are computed now, on the device that would run them.
//
// A node that fails on its data (an index out of range) stays and fails in the run, if the run gets
// there. Nodes that only spread a value over more memory stay too: their users read it as it is.
//
// What makes constants larger is a pass of its own, `unpack`: quantised weights that become floats take four
// times the room, which a session gives and a file should not. A result counts as larger if it has more than
// 1,024 elements and more bytes than the constants that go because nobody else reads them.
#include <algorithm>

#include "plugins/passes/passes.h"

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

double bytes(const Edit& e, keel_value v) {
  const Type type = e.type(v);
  return static_cast<double>(type.count()) * width_of(type.dtype);
}

bool grows(const Edit& e, NodeId n) {
  double made = 0, freed = 0;
  for (keel_value v : e.outs(n)) made += bytes(e, v);
  for (keel_value v : e.ins(n))
    if (v != KEEL_NO_VALUE && e.single_use(v)) freed += bytes(e, v);
  return e.type(e.out(n)).count() > kSpread && made > freed;
}

}  // namespace

void fold(Edit& e) {
  for (NodeId n : e.nodes())
    if (e.alive(n) && foldable(e, n) && !grows(e, n)) e.eval(n);
}

void unpack(Edit& e) {
  for (NodeId n : e.nodes())
    if (e.alive(n) && foldable(e, n)) e.eval(n);
}

}  // namespace keel_passes
