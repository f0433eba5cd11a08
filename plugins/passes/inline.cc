// inline.cc: replaces a call by the nodes of its graph, and in plans a node of an op that the device lacks by
// those of its body, so that other passes see across it.
//
// Excluded: what the device takes whole, calls with a gradient of their own, and effects other than
// reading variables. A graph with several calls is inlined only if it is small and the caller is not large.
#include <algorithm>
#include <unordered_map>

#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

constexpr uint32_t kSmall = 32;      // nodes of a graph that is inlined repeatedly
constexpr size_t kMostNodes = 4096;  // of the caller; above that, repeated graphs stay calls

bool stays(const Edit& e, NodeId call) {
  return (e.effects(call) & KEEL_MUST_RUN) != 0 || e.integer(call, "vjp") >= 0 || e.supported(call);
}

// Inlines the calls present now; calls in their graphs follow in the next round.
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

// Devices compute these in groups (fusion/), though some lack them alone. A call is for round().
constexpr const char* kStay[] = {"leaky_relu", "sum_to", "call"};

// The same for ops with bodies. The host refuses other nodes, and all in files, which other devices may run.
bool write_bodies(Edit& e) {
  bool any = false;
  for (NodeId n : std::vector<NodeId>(e.nodes())) {
    const bool whole = std::ranges::any_of(kStay, [&](const char* op) { return e.is(n, op); });
    if (!whole && !e.supported(n)) any |= e.inlined(n);
  }
  return any;
}

}  // namespace

void inline_nodes(Edit& e) {
  while (round(e)) {
  }
  while (write_bodies(e)) {
  }
}

}  // namespace keel_passes
