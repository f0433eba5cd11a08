// module_index.h: lookups by name, facts about ops, and buffers that AddNode reuses. Private to
// kernel/language/graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel/base/hash.h"
#include "kernel/language/graph/op_facts.h"
#include "kernel/language/opset/opset.h"

namespace keel {

struct ModuleIndex {
  HashMap<std::string, uint32_t> constants, variables, graphs, entries;
  HashMap<std::pair<uint8_t, uint64_t>, uint32_t> scalars;  // unnamed: dtype and bits
  HashMap<const OpDef*, std::unique_ptr<OpFacts>> ops;
  uint32_t fresh = 0;  // the next number to try for a generated constant name
  std::vector<Operand> operands;
  Inferred inferred;
  GraphTypesOf graph_types;  // of this module's graphs
  VarTypeOf var_types;
  const OpFacts& Facts(const OpDef&);
};

}  // namespace keel
