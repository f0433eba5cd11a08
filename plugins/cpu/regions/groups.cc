// groups.cc: the groups of a body: contractions in floats (fuse.h) and in integers (quantised.h).
#include "plugins/cpu/regions/quantised.h"

namespace keel_cpu {

std::vector<Group> MakeGroups(const Body& body) {
  std::vector<Group> groups;
  std::vector<bool> taken(body.nodes.size());
  // Later anchors first: the operands that they add exist by then, so the addition can be in place.
  for (uint32_t a = static_cast<uint32_t>(body.nodes.size()); a-- > 0;) {
    Group g;
    if (IsContraction(body.nodes[a].op))
      g = GroupAfter(body, a, taken);
    else if (taken[a] || !FindQuantised(body, a, taken, &g))
      continue;
    for (uint32_t n : g.nodes) taken[n] = true;
    groups.push_back(std::move(g));
  }
  return groups;
}

}  // namespace keel_cpu
