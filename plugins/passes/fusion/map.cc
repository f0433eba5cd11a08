// map.cc: connected elementwise nodes whose results have equal dims become one call, which the device runs
// tile by tile, so that intermediate values never reach memory. A reduction that is the only user of their
// result is included.
//
// Nothing is computed twice: a value with other users becomes a result of the call.
#include <algorithm>

#include "plugins/passes/edit/elementwise.h"
#include "plugins/passes/fusion/regions.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

constexpr size_t kMostSteps = 64, kMostOperands = 24;

bool same_dims(const Edit& e, NodeId a, NodeId b) {
  return e.same(e.type(e.out(a)).dims, e.type(e.out(b)).dims);
}

// The number of values that a set of nodes reads from outside.
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

bool is_reduction(std::string_view op) {
  constexpr std::string_view kOps[] = {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max",
                                       "reduce_min"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Whether all results of a region except v are used only inside it.
bool makes_only(const Edit& e, const Regions& regions, uint32_t region, keel_value v) {
  for (uint32_t place : regions.members(region)) {
    const keel_value made = e.out(regions.node(place));
    if (made == v) continue;
    if (e.fetched(made)) return false;
    for (NodeId user : e.users(made))
      if (regions.region(regions.place_of(user)) != region) return false;
  }
  return true;
}

// The region that reduction n can end: n is the only user of its result.
uint32_t ended_by(const Edit& e, const Regions& regions, NodeId n) {
  if (!is_reduction(e.op(n))) return kNone;
  const keel_value x = e.in(n, 0);
  const NodeId from = e.producer(x);
  if (!is_elementwise(e, from) || !e.single_use(x)) return kNone;
  const uint32_t region = regions.region(regions.place_of(from));
  return makes_only(e, regions, region, x) ? region : kNone;
}

}  // namespace

void map(Edit& e) {
  Regions regions(e);
  for (uint32_t p = 0; p < regions.size(); p++) {
    const NodeId n = regions.node(p);
    if (!is_elementwise(e, n)) continue;
    for (uint32_t from : regions.producers(p)) {
      const NodeId before = regions.node(from);
      if (is_elementwise(e, before) && same_dims(e, before, n) &&
          fits(e, regions, regions.region(p), regions.region(from)))
        regions.fuse(p, from);
    }
  }
  std::vector<NodeId> ends(regions.size(), kNone);  // by region
  for (uint32_t p = 0; p < regions.size(); p++)
    if (const uint32_t region = ended_by(e, regions, regions.node(p)); region != kNone)
      ends[region] = regions.node(p);
  Claims claims(e, "map", 2), reduced(e, "reduced", 2);
  for (uint32_t p = 0; p < regions.size(); p++) {
    if (regions.region(p) != p) continue;
    std::vector<NodeId> nodes = nodes_of(regions, p);
    if (ends[p] != kNone) {
      nodes.push_back(ends[p]);
      if (reduced.whole(&nodes)) continue;
      nodes.pop_back();
    }
    claims.claim(std::move(nodes));
  }
}

}  // namespace keel_passes
