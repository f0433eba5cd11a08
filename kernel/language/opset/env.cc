// env.cc: messages of inference, and recorded checks.
#include "kernel/language/opset/env.h"

namespace keel::opset {

std::string Env::OperandName(size_t index) const {
  const OperandDef& o = OperandAt(def, index);
  return o.variadic ? absl::StrCat(o.name, "[", index + 1 - def.operands.size(), "]") : o.name;
}

std::string Env::PrintOperand(size_t index) const {
  const Operand& o = operands[index];
  if (o.kind == Operand::kTyped) return keel::Print(o.type, dims);
  return o.kind == Operand::kWeakInt     ? "an integer literal"
         : o.kind == Operand::kWeakFloat ? "a float literal"
                                         : "omitted";
}

std::string Env::Print(std::span<const int64_t> list) const {
  std::string out;
  for (size_t i = 0; i < list.size() && i < 16; i++)
    absl::StrAppend(&out, i ? ", " : "", dims.Print(list[i]));
  return list.size() > 16 ? out + ", ..." : out;
}

absl::Status Env::FailWith(std::string message) const {
  std::string types;
  for (size_t i = 0; i < operands.size() && i < 8 && !def.operands.empty(); i++)
    if (i < def.operands.size() || def.has_variadic)
      absl::StrAppend(&types, types.empty() ? ": " : ", ", OperandName(i), " is ", PrintOperand(i));
  return Annotate(Invalid(def.name, ": ", message, types), kErrorOp, def.name);
}

void Env::AddCheck(Dim a, Dim b, bool equal, std::string message) {
  for (const Inferred::Check& c : *checks)
    if (c.a == a && c.b == b && c.equal == equal) return;
  checks->push_back({a, b, equal, absl::StrCat(def.name, ": ", message)});
}

}  // namespace keel::opset
