// op_facts.h: facts about ops, and the canonical form of attributes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/language/opset/opset.h"

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

// Converts attributes to canonical form: sorted, unique, known to the op, of the declared kind (a scalar is
// allowed for a list); omits attributes that equal a constant default.
absl::Status CanonicalAttrs(const OpFacts&, const DimTable&, Attrs*);
absl::Status CheckAttrs(const OpDef& op, Attrs attrs);  // names and kinds

// The operand of the op at this position (a variadic operand covers several); null beyond the last.
const OperandInfo* OperandAt(const OpFacts&, size_t position, size_t count);

}  // namespace keel
