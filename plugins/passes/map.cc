// map.cc: connected elementwise nodes whose results have the same dims become one call, which the device
// runs tile by tile so that what lies between them never reaches memory.
//
// Nothing is computed twice: a value that others need too becomes a result of the call.
#include <algorithm>

#include "elementwise.h"
#include "passes.h"
#include "regions.h"

namespace keel_passes {
namespace {

constexpr size_t kMostSteps = 32, kMostOperands = 24;

bool same_dims(const Edit& e, NodeId a, NodeId b) {
  return e.same(e.type(e.out(a)).dims, e.type(e.out(b)).dims);
}

// What a set of nodes reads from outside.
size_t operands(const Edit& e, const std::vector<NodeId>& nodes) {
  Ids made, read;
  for (NodeId n : nodes) {
    for (keel_value v : e.ins(n))
      if (v != KEEL_NO_VALUE) read.push_back(v);
    const Ids outs = e.outs(n);
    made.insert(made.end(), outs.begin(), outs.end());
  }
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  std::sort(made.begin(), made.end());
  return static_cast<size_t>(std::count_if(read.begin(), read.end(), [&](keel_value v) {
    return !std::binary_search(made.begin(), made.end(), v);
  }));
}

std::vector<NodeId> nodes_of(const Regions& regions, uint32_t region) {
  std::vector<NodeId> nodes;
  for (uint32_t place : regions.members(region)) nodes.push_back(regions.node(place));
  return nodes;
}

bool fits(const Edit& e, const Regions& regions, uint32_t a, uint32_t b) {
  if (a == b) return false;
  if (regions.members(a).size() + regions.members(b).size() > kMostSteps) return false;
  std::vector<NodeId> both = nodes_of(regions, a), other = nodes_of(regions, b);
  both.insert(both.end(), other.begin(), other.end());
  return operands(e, both) <= kMostOperands;
}

}  // namespace

void map(Edit& e) {
  Regions regions(e);
  for (uint32_t p = 0; p < regions.size(); p++) {
    const NodeId n = regions.node(p);
    if (elementwise(e.op(n)) == 0) continue;
    for (uint32_t from : regions.producers(p)) {
      const NodeId before = regions.node(from);
      if (elementwise(e.op(before)) != 0 && same_dims(e, before, n) &&
          fits(e, regions, regions.region(p), regions.region(from)))
        regions.fuse(p, from);
    }
  }
  Claims claims(e, "map", 2);
  for (uint32_t p = 0; p < regions.size(); p++)
    if (regions.region(p) == p && regions.members(p).size() >= 2) claims.claim(nodes_of(regions, p));
}

}  // namespace keel_passes
