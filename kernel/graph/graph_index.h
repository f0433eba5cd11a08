// graph_index.h: what a Module keeps beside its public vectors to be quick: lookups by name, facts about
// its ops, and space that AddNode uses again for each node. Private to kernel/graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/base/hash.h"
#include "kernel/graph/graph.h"

namespace keel {

// An op's signature, asked once, with the constant defaults of its attributes as values.
struct OpFacts {
  std::string name;
  std::vector<OperandInfo> operands;
  std::vector<AttrInfo> attrs;
  std::vector<std::optional<AttrValue>> defaults;  // one per attribute; none: required or computed
  const AttrInfo* FindAttr(std::string_view attr) const;
  std::string var_attr;  // the attribute that names a variable; "": none
};
OpFacts MakeFacts(const OpDef&);

struct Module::Index {
  HashMap<std::string, uint32_t> constants, variables, graphs, entries;
  HashMap<std::pair<uint8_t, uint64_t>, uint32_t> scalars;  // unnamed: dtype and bits
  HashMap<const OpDef*, std::unique_ptr<OpFacts>> ops;
  uint32_t fresh = 0;  // the next number to try for a made-up constant name
  std::vector<Operand> operands;
  Inferred inferred;
  GraphTypesOf graph_types;  // of this module's graphs
  VarTypeOf var_types;
  const OpFacts& Facts(const OpDef&);
};

// Brings attributes into the form that nodes keep: sorted, each once, known to the op, of the kind that the
// op declares (a scalar may stand for a list), without those that equal a constant default.
absl::Status CanonicalAttrs(const OpFacts&, const DimTable&, Attrs*);
absl::Status CheckAttrs(const OpDef& op, Attrs attrs);  // names and kinds

// "v12" and "v12_1": what result `result` of node `node` is called while it has no name.
std::string ResultName(NodeId node, uint32_t result);
// Does the name look like that? Gives the numbers.
std::optional<std::pair<NodeId, uint32_t>> SplitResultName(std::string_view name);

bool IsUtf8(std::string_view);
// The operand that a node's position belongs to (a variadic one covers many); nullptr beyond the last.
const OperandInfo* OperandAt(const OpFacts&, size_t position, size_t count);
// Checks dtype, rank and dims (numbers up to kMaxDim or expressions); `what` begins the message.
absl::Status CheckType(std::string_view what, const TensorType&, const DimTable&);
// Bytes of a type with concrete dims; an error beyond kMaxTensorBytes.
absl::StatusOr<uint64_t> BytesOf(std::string_view what, const TensorType&);
// The type that holds for a value that inference calls `inferred` and its writer `declared`: equal dims, or
// the declared one where only a run can tell. An error where they differ for certain.
absl::StatusOr<TensorType> MergeTypes(std::string_view what, const TensorType& inferred,
                                      const TensorType& declared, const DimTable&);

}  // namespace keel
