// check_calls.cc: checks the calls in bodies and rules against the catalogue.
#include <algorithm>

#include "kernel/language/opset/def.h"

namespace keel::opset {
namespace {

void Visit(const Expr& e, const std::function<void(const Expr&)>& visit) {
  if (e.kind == Expr::kCall && !e.function) visit(e);
  for (const Expr& part : e.parts) Visit(part, visit);
}

// An unquoted word is an enum choice, except in a rule's pattern, where it is a new name.
std::string WrongAttribute(const OpDef& op, const std::string& name, const Expr& value) {
  std::string wrong = absl::StrCat(op.name, " has no attribute '", name, "'; its attributes:");
  for (const AttrDef& a : op.attrs) {
    absl::StrAppend(&wrong, " ", a.name);
    if (a.name != name) continue;
    bool choice = std::find(a.choices.begin(), a.choices.end(), value.text) != a.choices.end();
    if (value.kind != Expr::kName || choice == (value.ref == Expr::kNothing)) return "";
    return choice ? absl::StrCat("write \"", value.text, "\" in quotes")
                  : absl::StrCat("'", value.text, "' is not defined");
  }
  return wrong;
}

std::string WrongCall(const Catalogue& catalogue, const OpDef& def, const Expr& call) {
  auto op = catalogue.Find(call.text, 0);
  if (!op.ok()) return std::string(op.status().message());
  const OpDef& o = **op;
  if (!def.version &&
      (HasEffect(o) || IsTypedByGraph(o) || IsControl(o) || o.results.size() != 1 || o.results[0].variadic))
    return call.text + " has an effect, bodies or several results, which rules do not support";
  bool spliced = std::any_of(call.parts.begin(), call.parts.end(),
                             [](const Expr& e) { return e.kind == Expr::kSplice; });
  if (!spliced &&
      ((call.parts.size() > o.operands.size() && !o.has_variadic) || call.parts.size() < o.required_operands))
    return absl::StrCat(call.text, " takes ", o.operands.size(), " operands, not ", call.parts.size());
  std::string wrong;
  for (const auto& [name, value] : call.attrs)
    if (wrong.empty()) wrong = WrongAttribute(o, name, value);
  return wrong;
}

}  // namespace

void ForEachCall(const OpDef& def, const std::function<void(const Expr&)>& visit) {
  for (const Block* block : {&def.match, &def.body, &def.vjp.block})
    for (const Statement& s : *block)
      if (s.kind != Statement::kLet)
        for (const Expr& value : s.values) Visit(value, visit);
}

absl::Status CheckCalls(const Catalogue& catalogue, const OpDef& def) {
  absl::Status status;
  ForEachCall(def, [&](const Expr& call) {
    if (!status.ok()) return;
    std::string wrong = WrongCall(catalogue, def, call);
    if (!wrong.empty()) status = FailIn(def, call.line, call.column, wrong);
  });
  return status;
}

}  // namespace keel::opset
