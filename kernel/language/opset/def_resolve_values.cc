// def_resolve_values.cc: names in static expressions, in values and in the blocks of bodies and gradient
// rules.
#include <algorithm>

#include "kernel/language/opset/functions.h"
#include "kernel/language/opset/resolver.h"

namespace keel::opset {

// Resolves a static expression. words: undefined names are allowed, as enum choices in attributes of calls.
absl::Status Resolver::Static(Expr* e, bool words) {
  if (e->kind == Expr::kName) return StaticName(e, words);
  if (e->kind == Expr::kCall) return StaticCall(e);
  for (Expr& part : e->parts) RETURN_IF_ERROR(Static(&part, words && e->kind == Expr::kCond));
  return absl::OkStatus();
}

bool Resolver::Bind(Expr* e) {
  auto set = [e](Expr::Ref ref, uint16_t index) {
    e->ref = ref;
    e->index = index;
    return true;
  };
  if (uint16_t slot = FindSlot(e->text); slot != kNoSlot) return set(Expr::kSlot, slot);
  for (size_t i = 0; i < def_.types.size(); i++)
    if (def_.types[i].name == e->text) return set(Expr::kType, static_cast<uint16_t>(i));
  if (e->text == "true" || e->text == "false") return set(Expr::kBool, e->text == "true");
  if (e->text == "inf" || e->text == "nan") {
    e->f = e->text == "inf" ? __builtin_inf() : __builtin_nan("");
    return set(Expr::kNumber, 0);
  }
  if (auto dtype = ParseDType(e->text)) return set(Expr::kDType, static_cast<uint16_t>(*dtype));
  return false;
}

absl::Status Resolver::StaticName(Expr* e, bool words) {
  if (Bind(e) || words) return absl::OkStatus();
  return FailAt(*e, absl::StrCat("'", e->text, "' is not defined"));
}

absl::Status Resolver::StaticCall(Expr* e) {
  e->function = FindFunction(e->text);
  if (!e->function) return FailAt(*e, absl::StrCat("'", e->text, "' is not a shape function"));
  if (!e->attrs.empty())
    return FailAt(*e, absl::StrCat("the shape function ", e->text, " has no attributes"));
  size_t wanted = e->function->arguments.size();
  if (e->parts.size() != wanted)
    return FailAt(*e, absl::StrCat(e->text, " takes ", wanted, " arguments, not ", e->parts.size()));
  if (e->function->arguments != "n") {
    for (Expr& part : e->parts) RETURN_IF_ERROR(Static(&part));
    return absl::OkStatus();
  }
  Expr& arg = e->parts[0];
  for (size_t i = 0; i < def_.operands.size(); i++)
    if (arg.kind == Expr::kName && arg.text == def_.operands[i].name) {
      arg.ref = Expr::kOperand;
      arg.index = static_cast<uint16_t>(i);
      return absl::OkStatus();
    }
  if (arg.kind == Expr::kName && locals_.count(arg.text)) return absl::OkStatus();
  return FailAt(*e, absl::StrCat(e->text, "(...) requires the name of an operand"));
}

// Resolves a value: names are operands, locals, attributes (as weak literals), inf, nan, none.
absl::Status Resolver::Value(Expr* e) {
  switch (e->kind) {
    case Expr::kName:
      if (Bind(e) || locals_.count(e->text) || e->text == "none") return absl::OkStatus();
      return FailAt(*e, absl::StrCat("'", e->text, "' is not defined"));
    case Expr::kString:
    case Expr::kList:
    case Expr::kNot:
      return FailAt(*e, "strings, lists and '!' are not values");
    case Expr::kBinary:
      if (opset::Info(e->op).op.empty())
        return FailAt(*e, absl::StrCat("'", opset::Info(e->op).text, "' does not apply to values"));
      break;
    case Expr::kCond:
      RETURN_IF_ERROR(Static(&e->parts[0]));
      RETURN_IF_ERROR(Value(&e->parts[1]));
      return Value(&e->parts[2]);
    default:
      break;
  }
  for (Expr& part : e->parts) RETURN_IF_ERROR(Value(&part));
  for (auto& [name, value] : e->attrs) RETURN_IF_ERROR(Static(&value, true));
  return absl::OkStatus();
}

absl::Status Resolver::ResolveBlock(Block* block, size_t returns, std::string_view what) {
  for (Statement& s : *block) {
    if (s.kind == Statement::kLet) {
      RETURN_IF_ERROR(Static(&s.values[0]));
      if (FindSlot(s.names[0]) != kNoSlot) return Fail(absl::StrCat("let ", s.names[0], " hides a name"));
      ASSIGN_OR_RETURN(s.slot, MakeSlot(s.names[0]));
      continue;
    }
    for (Expr& value : s.values) RETURN_IF_ERROR(Value(&value));
    for (const std::string& name : s.names)
      if (!locals_.insert(name).second) return Fail(absl::StrCat(what, " binds '", name, "' twice"));
  }
  const Statement& last = block->back();
  bool spliced = std::any_of(last.values.begin(), last.values.end(),
                             [](const Expr& e) { return e.kind == Expr::kSplice; });
  if (!spliced && last.values.size() != returns)
    return Fail(absl::StrCat(what, " returns ", last.values.size(), " values instead of ", returns));
  return absl::OkStatus();
}

absl::Status Resolver::Blocks() {
  std::set<std::string> operands;
  for (const OperandDef& o : def_.operands) operands.insert(o.name);
  if (!def_.body.empty()) {
    locals_ = operands;
    RETURN_IF_ERROR(ResolveBlock(&def_.body, def_.results.size(), "body"));
  }
  if (def_.vjp.block.empty()) return absl::OkStatus();
  if (def_.vjp.cotangents.size() != def_.results.size())
    return Fail(absl::StrCat("vjp names ", def_.vjp.cotangents.size(), " cotangents for ",
                             def_.results.size(), " results"));
  locals_ = operands;
  for (const ResultDef& r : def_.results) locals_.insert(r.name);
  locals_.insert(def_.vjp.cotangents.begin(), def_.vjp.cotangents.end());
  return ResolveBlock(&def_.vjp.block, def_.operands.size(), "vjp");
}

}  // namespace keel::opset
