// fold.cc: computes nodes with constant operands now, on the device that would run them.
//
// A node that fails on its data (an out-of-bounds index) stays and fails in the run, if it is reached. Nodes
// that only broadcast a value stay too: their users read the small value.
//
// Folding that enlarges constants is a separate pass, `unpack`: quantised weights become four times as large
// as floats, which is acceptable in a session but not in a file. A result is larger if it has more than 1,024
// elements and more bytes than the constants that it makes unused.
#include <algorithm>

#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

constexpr int64_t kMostBroadcast = 1024;  // largest broadcast result that is folded, in elements

bool is_broadcast(std::string_view op) {
  constexpr std::string_view kOps[] = {"fill", "broadcast_to", "tile", "iota", "one_hot", "random"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool foldable(const Edit& e, NodeId n) {
  if (e.outs(n).empty()) return false;  // runs for its effect
  for (keel_value v : e.ins(n))
    if (v != KEEL_NO_VALUE && !e.constant(v)) return false;
  const int64_t count = e.type(e.out(n)).count();
  return count >= 0 && (count <= kMostBroadcast || !is_broadcast(e.op(n)));
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
  return e.type(e.out(n)).count() > kMostBroadcast && made > freed;
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
