// graph_index.h: lookups by name, facts about ops, and buffers that AddNode reuses. Private to kernel/graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/base/hash.h"
#include "kernel/graph/graph.h"

namespace keel {

// An op's signature, with the constant defaults of its attributes as values.
struct OpFacts {
  std::string name;
  std::vector<OperandInfo> operands;
  std::vector<AttrInfo> attrs;
  std::vector<std::optional<AttrValue>> defaults;  // one per attribute; nullopt: required or computed
  const AttrInfo* FindAttr(std::string_view attr) const;
  std::string var_attr;  // the attribute that names a variable, or ""
};
OpFacts MakeFacts(const OpDef&);

struct Module::Index {
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

// Converts attributes to canonical form: sorted, unique, known to the op, of the declared kind (a scalar is
// allowed for a list); omits attributes that equal a constant default.
absl::Status CanonicalAttrs(const OpFacts&, const DimTable&, Attrs*);
absl::Status CheckAttrs(const OpDef& op, Attrs attrs);  // names and kinds

// "v12" and "v12_1": the names of unnamed results.
std::string ResultName(NodeId node, uint32_t result);
// The numbers in such a name; nullopt for other names.
std::optional<std::pair<NodeId, uint32_t>> SplitResultName(std::string_view name);

bool IsUtf8(std::string_view);
// The operand of the op at this position (a variadic operand covers several); null beyond the last.
const OperandInfo* OperandAt(const OpFacts&, size_t position, size_t count);
// Checks dtype, rank and dims (numbers up to kMaxDim, or expressions); `what` prefixes the message.
absl::Status CheckType(std::string_view what, const TensorType&, const DimTable&);
// Size in bytes of a type with numeric dims; an error beyond kMaxTensorBytes.
absl::StatusOr<uint64_t> BytesOf(std::string_view what, const TensorType&);
// Merges an inferred and a declared type: a dim that inference leaves open is taken from the declaration. An
// error if they differ for certain.
absl::StatusOr<TensorType> MergeTypes(std::string_view what, const TensorType& inferred,
                                      const TensorType& declared, const DimTable&);

}  // namespace keel
