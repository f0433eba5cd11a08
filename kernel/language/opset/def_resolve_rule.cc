// def_resolve_rule.cc: the pattern of a rewrite rule: its values become operands, new names of attributes
// slots.
#include <algorithm>
#include <utility>

#include "kernel/language/opset/resolver.h"

namespace keel::opset {

// Resolves a rewrite rule. Value names become operands, new attribute names become slots; operand 0 is the
// result of the whole pattern.
absl::Status Resolver::Rule() {
  if (def_.match.empty()) return absl::OkStatus();
  NewOperand("result");
  RETURN_IF_ERROR(ResolvePattern(&def_.match[0].values[0]));
  for (const Statement& s : def_.match)
    if (s.kind == Statement::kAssign && s.slot == kNoSlot)
      return FailAt(s.values[0], absl::StrCat("'", s.names[0], "' is not in the pattern"));
  for (Expr* attr : attrs_) RETURN_IF_ERROR(Static(attr));
  for (const OperandDef& o : def_.operands)
    if (FindSlot(o.name) != kNoSlot)
      return FailAt(def_.match[0].values[0], absl::StrCat("'", o.name, "' is a value and an attribute"));
  return absl::OkStatus();
}

void Resolver::NewOperand(std::string_view name) {
  def_.operands.emplace_back().name = name;
  def_.operands.back().patterns.emplace_back().any = true;
}

absl::Status Resolver::ResolvePattern(Expr* e) {
  bool op = e->kind == Expr::kCall || (e->kind == Expr::kBinary && !opset::Info(e->op).op.empty());
  if (e->kind == Expr::kNeg && e->parts[0].text == "inf") {
    e->kind = Expr::kFloat;
    e->f = -__builtin_inf();
  }
  if (e->kind == Expr::kInt || e->kind == Expr::kFloat) return absl::OkStatus();
  if (e->kind == Expr::kName) return ResolvePatternName(e);
  if (!op && e->kind != Expr::kNeg) return FailAt(*e, "a pattern consists of ops, names and numbers");
  for (Expr& part : e->parts) RETURN_IF_ERROR(ResolvePattern(&part));
  for (auto& [name, value] : e->attrs) {
    attrs_.push_back(&value);
    if (value.kind == Expr::kName && !Bind(&value)) RETURN_IF_ERROR(MakeSlot(value.text).status());
  }
  return absl::OkStatus();
}

// The first use of a name defined by `where` includes that definition in the pattern.
absl::Status Resolver::ResolvePatternName(Expr* e) {
  constexpr std::string_view kWords[] = {"none", "inf", "nan", "true", "false"};
  if (std::find(std::begin(kWords), std::end(kWords), e->text) != std::end(kWords)) return Value(e);
  if (e->text == "result") return FailAt(*e, "'result' is reserved for the whole pattern; use another name");
  auto& all = def_.operands;
  auto found = std::find_if(all.begin(), all.end(), [&](const OperandDef& o) { return o.name == e->text; });
  e->ref = Expr::kOperand;
  e->index = static_cast<uint16_t>(found - all.begin());
  if (found != all.end()) return absl::OkStatus();
  if (all.size() >= kMaxOpSlots) return FailAt(*e, "too many names");
  NewOperand(e->text);
  bool said = false;
  for (Statement& s : def_.match) {
    if (s.kind != Statement::kAssign || s.names[0] != e->text) continue;
    if (std::exchange(said, true) || s.names.size() != 1)
      return FailAt(s.values[0], "'where' defines one name at a time, once");
    s.slot = e->index;
    RETURN_IF_ERROR(ResolvePattern(&s.values[0]));
  }
  return absl::OkStatus();
}

}  // namespace keel::opset
