#include "kernel/language/graph/module_index.h"

namespace keel {

const OpFacts& ModuleIndex::Facts(const OpDef& op) {
  auto& facts = ops[&op];
  if (!facts) facts = std::make_unique<OpFacts>(MakeFacts(op));
  return *facts;
}

}  // namespace keel
