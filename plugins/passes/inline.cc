// inline.cc: a call gives way to the nodes of its graph, so that the other passes see across it.
//
// Stays: what the device takes whole, a gradient of its own, an effect other than reading a variable. A graph
// that other calls here need too is written out only where it is small, and while this graph is not large.
#include <unordered_map>

#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

constexpr uint32_t kSmall = 32;      // nodes of a graph that is written out again and again
constexpr size_t kMostNodes = 4096;  // of this graph: from there on no such graph is

bool stays(const Edit& e, NodeId call) {
  return (e.effects(call) & KEEL_MUST_RUN) != 0 || e.integer(call, "vjp") >= 0 || e.supported(call);
}

// Writes out the calls that are here now; those in their graphs come with the next round.
bool round(Edit& e) {
  std::unordered_map<int64_t, size_t> calls;
  std::vector<NodeId> nodes = e.nodes(), found;
  for (NodeId n : nodes) {
    if (!e.is(n, "call")) continue;
    found.push_back(n);
    calls[e.integer(n, "body")]++;
  }
  bool any = false;
  size_t size = nodes.size();
  for (NodeId n : found) {
    const bool again = calls[e.integer(n, "body")] > 1;
    const uint32_t own = e.body_size(n);
    if ((again && (own > kSmall || size + own > kMostNodes)) || stays(e, n)) continue;
    if (!e.inlined(n)) continue;
    size += own;
    any = true;
  }
  return any;
}

}  // namespace

void inline_calls(Edit& e) {
  while (round(e)) {
  }
}

}  // namespace keel_passes
