// elementwise.cc: traits of nodes, and which operands surely broadcast.
#include "plugins/passes/edit/elementwise.h"

namespace keel_passes {

bool is_elementwise(const Edit& e, NodeId n) { return (e.traits(n) & KEEL_TRAIT_ELEMENTWISE) != 0; }

bool is_unary(const Edit& e, NodeId n) {
  return (e.traits(n) & (KEEL_TRAIT_ELEMENTWISE | KEEL_TRAIT_BROADCASTS)) == KEEL_TRAIT_ELEMENTWISE;
}

bool is_binary(const Edit& e, NodeId n) {
  constexpr uint32_t kBoth = KEEL_TRAIT_ELEMENTWISE | KEEL_TRAIT_BROADCASTS;
  return (e.traits(n) & kBoth) == kBoth && e.ins(n).size() == 2;
}

bool surely_broadcasts(const Edit& e, const Dims& dims, const Dims& result) {
  if (dims.size() > result.size()) return false;
  for (size_t back = 1; back <= dims.size(); back++) {
    const keel_dim d = dims[dims.size() - back];
    if (d != 1 && !e.same(d, result[result.size() - back])) return false;
  }
  return true;
}

}  // namespace keel_passes
