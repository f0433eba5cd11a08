// def_resolve.cc: the clauses of a definition: attributes, operands, results, checks; see resolver.h.
#include "kernel/language/opset/resolver.h"

#include <algorithm>

#include "kernel/language/opset/infer_internal.h"

namespace keel::opset {

absl::Status Resolver::Run() {
  RETURN_IF_ERROR(Attributes());
  RETURN_IF_ERROR(Variables());
  RETURN_IF_ERROR(Rule());
  RETURN_IF_ERROR(Operands());
  RETURN_IF_ERROR(Shapes());
  RETURN_IF_ERROR(Groups());
  RETURN_IF_ERROR(Defaults());
  RETURN_IF_ERROR(Results());
  RETURN_IF_ERROR(Checks());
  RETURN_IF_ERROR(CheckAxesUsed());
  return Blocks();
}

absl::Status Resolver::Fail(std::string_view message) const {
  return Annotate(Invalid(def_.origin, def_.origin.empty() ? "" : ": ", "op ", def_.name, ": ", message),
                  kErrorOp, def_.name);
}

absl::Status Resolver::FailAt(const Expr& e, std::string_view message) const {
  return FailIn(def_, e.line, e.column, message);
}

uint16_t Resolver::FindSlot(std::string_view name) const {
  auto place = std::find(def_.slots.begin(), def_.slots.end(), name);
  return place == def_.slots.end() ? kNoSlot : static_cast<uint16_t>(place - def_.slots.begin());
}

absl::StatusOr<uint16_t> Resolver::MakeSlot(std::string_view name) {
  if (uint16_t found = FindSlot(name); found != kNoSlot) return found;
  if (def_.slots.size() >= kMaxOpSlots) return Fail(absl::StrCat("more than ", kMaxOpSlots, " names"));
  def_.slots.emplace_back(name);
  def_.group_length.push_back(kNoSlot);
  return static_cast<uint16_t>(def_.slots.size() - 1);
}

AttrDef* Resolver::FindAttr(std::string_view name) {
  for (AttrDef& a : def_.attrs)
    if (a.name == name) return &a;
  return nullptr;
}

absl::Status Resolver::Attributes() {
  if (def_.types.size() > kMaxOpTypes)
    return Fail(absl::StrCat("more than ", kMaxOpTypes, " type variables"));
  for (AttrDef& a : def_.attrs) {
    if (FindSlot(a.name) != kNoSlot) return Fail(absl::StrCat("two attributes are named ", a.name));
    ASSIGN_OR_RETURN(a.slot, MakeSlot(a.name));
    auto& sorted = def_.attrs_by_name;
    auto later = [&](uint16_t other) { return a.name < def_.attrs[other].name; };
    auto place = std::find_if(sorted.begin(), sorted.end(), later);
    sorted.insert(place, static_cast<uint16_t>(&a - def_.attrs.data()));
  }
  for (AttrDef& a : def_.attrs) {
    if (a.type != AttrDef::kRankOf) continue;
    ASSIGN_OR_RETURN(uint16_t group, MakeSlot(a.group_name));
    def_.group_length[group] = a.slot;
  }
  return absl::OkStatus();
}

// Variables are matched before the operands, which are compared with them.
absl::Status Resolver::Variables() {
  size_t count = 0;
  for (AttrDef& a : def_.attrs) {
    if (a.type != AttrDef::kVar) continue;
    if (a.has_default) return Fail(absl::StrCat("attribute ", a.name, ": a variable has no default"));
    if (a.shape.any || ++count > 1) return Fail("an op has at most one variable, with a pattern");
    RETURN_IF_ERROR(ResolveDType(&a.shape));
    RETURN_IF_ERROR(Items(&a.shape, a.name, false, &bound_));
  }
  bool on_var = def_.effect == EffectKind::kRead || def_.effect == EffectKind::kWrite;
  const AttrDef* on = FindAttr(def_.effect_on);
  if (!def_.effect_on.empty() && !on)
    return Fail(absl::StrCat("its effect names '", def_.effect_on, "', which is not an attribute"));
  if (on_var && (!on || on->type != AttrDef::kVar)) return Fail("its effect requires a variable: read(var)");
  return absl::OkStatus();
}

absl::Status Resolver::Operands() {
  std::set<std::string> names;
  for (size_t i = 0; i < def_.operands.size(); i++) {
    OperandDef& o = def_.operands[i];
    if (!names.insert(o.name).second) return Fail(absl::StrCat("two operands are named ", o.name));
    if (o.variadic && i + 1 != def_.operands.size())
      return Fail(absl::StrCat("the variadic operand ", o.name, " must be the last"));
    if (!o.variadic && !o.optional) def_.required_operands = i + 1;
    def_.has_variadic |= o.variadic;
    if (!o.condition_name.empty()) {
      const AttrDef* a = FindAttr(o.condition_name);
      if (!a || a->type != AttrDef::kBool)
        return Fail(absl::StrCat("'", o.condition_name, " ?' requires a bool attribute"));
      o.condition = a->slot;
    }
    std::set<uint16_t> before = bound_;
    for (Pattern& p : o.patterns) {
      std::set<uint16_t> mine = before;
      RETURN_IF_ERROR(OperandPattern(&p, o, &mine));
      bound_.insert(mine.begin(), mine.end());
    }
  }
  for (Trait trait : {Trait::kAlias, Trait::kNoopIfSame, Trait::kNoopIfIdentity})
    if (def_.required_operands == 0 && Has(def_, trait))
      return Fail("its result is an operand, but it has none");
  return absl::OkStatus();
}

absl::Status Resolver::OperandPattern(Pattern* p, const OperandDef& o, std::set<uint16_t>* bound) {
  if (p->any) return absl::OkStatus();
  RETURN_IF_ERROR(ResolveDType(p));
  if (!p->axis_name.empty()) {
    const AttrDef* a = FindAttr(p->axis_name);
    if (!a || a->type != AttrDef::kAxis)
      return Fail(absl::StrCat("'@", p->axis_name, "' requires an attribute of type axis"));
    p->axis = a->slot;
    used_axes_.insert(a->slot);
  }
  return Items(p, o.name, o.variadic, bound);
}

// Also rejects patterns with two groups of unknown length.
absl::Status Resolver::Items(Pattern* p, std::string_view where, bool variadic, std::set<uint16_t>* bound) {
  int open = 0;
  std::set<uint16_t> mine;
  for (Item& item : p->items) {
    if (item.marked) open = 0;
    if (item.kind == Item::kExpr || item.kind == Item::kSplice) {
      RETURN_IF_ERROR(Static(&item.expr));
      continue;
    }
    if (item.kind == Item::kCollect && !variadic)
      return Fail(absl::StrCat("'*' is allowed only in a variadic operand, not in ", where));
    if (item.kind == Item::kNumber || item.kind == Item::kMark) continue;
    ASSIGN_OR_RETURN(item.slot, MakeSlot(item.expr.text));
    bool sized = bound->count(item.slot) || def_.group_length[item.slot] != kNoSlot;
    if (item.kind == Item::kGroup && !sized && ++open > 1)
      return Fail(absl::StrCat(where, ": two groups have unknown length"));
    if (item.kind == Item::kGroup && !mine.insert(item.slot).second)
      return Fail(absl::StrCat(where, ": a group occurs twice in one pattern"));
    bound->insert(item.slot);
  }
  return absl::OkStatus();
}

absl::Status Resolver::ResolveDType(Pattern* p) {
  for (size_t i = 0; i < def_.types.size(); i++)
    if (def_.types[i].name == p->dtype_name) {
      p->dtype = {DTypeRef::kVariable, DType::kNone, static_cast<uint16_t>(i)};
      return absl::OkStatus();
    }
  if (const AttrDef* a = FindAttr(p->dtype_name); a && a->type == AttrDef::kDType) {
    p->dtype = {DTypeRef::kAttr, DType::kNone, a->slot};
    return absl::OkStatus();
  }
  auto fixed = ParseDType(p->dtype_name);
  if (!fixed)
    return Fail(absl::StrCat("'", p->dtype_name, "' is not a dtype, type variable or dtype attribute"));
  p->dtype = {DTypeRef::kFixed, *fixed, 0};
  return absl::OkStatus();
}

absl::Status Resolver::Shapes() {
  for (AttrDef& a : def_.attrs)
    if (a.type == AttrDef::kShape) RETURN_IF_ERROR(Items(&a.shape, a.name, false, &bound_));
  return absl::OkStatus();
}

absl::Status Resolver::Groups() {
  for (AttrDef& a : def_.attrs) {
    if (a.group_name.empty()) continue;
    a.group = FindSlot(a.group_name);
    if (a.group == kNoSlot || (a.type != AttrDef::kRankOf && !bound_.count(a.group)))
      return Fail(absl::StrCat("attribute ", a.name, ": no operand has the group ", a.group_name));
  }
  return absl::OkStatus();
}

absl::Status Resolver::Defaults() {
  for (AttrDef& a : def_.attrs) {
    if (!a.has_default) continue;
    if (a.type == AttrDef::kEnum) {
      if (std::find(a.choices.begin(), a.choices.end(), a.default_value.text) == a.choices.end())
        return Fail(absl::StrCat("the default of ", a.name, " is not one of its choices"));
      continue;
    }
    RETURN_IF_ERROR(Static(&a.default_value));
  }
  return absl::OkStatus();
}

absl::Status Resolver::Results() {
  for (ResultDef& r : def_.results) {
    if (r.variadic && def_.results.size() != 1) return Fail("a variadic result must be the only one");
    if (!r.typed_by.empty()) {
      const AttrDef* a = FindAttr(r.typed_by);
      if (!a || a->type != AttrDef::kGraph)
        return Fail(absl::StrCat("'of ", r.typed_by, "' requires a graph attribute"));
      def_.typed_by = a->slot;
      continue;
    }
    if (!r.rule.empty()) {
      def_.control = FindControlRule(r.rule);
      if (!def_.control) return Fail(absl::StrCat("no rule is named '", r.rule, "'"));
      continue;
    }
    if (r.pattern.any) return Fail(absl::StrCat("the type of result ", r.name, " must be given"));
    RETURN_IF_ERROR(ResolveDType(&r.pattern));
    if (r.variadic) RETURN_IF_ERROR(Static(&r.count));
    for (Item& item : r.pattern.items) {
      if (item.kind == Item::kCollect || item.kind == Item::kMark || item.marked)
        return Fail(absl::StrCat("'*' and '@' are allowed only in operands, not in result ", r.name));
      if (item.kind == Item::kNumber) continue;
      RETURN_IF_ERROR(Static(&item.expr));
      item.slot = item.expr.ref == Expr::kSlot ? item.expr.index : kNoSlot;
    }
  }
  return absl::OkStatus();
}

absl::Status Resolver::Checks() {
  for (CheckDef& c : def_.checks) {
    RETURN_IF_ERROR(Static(&c.condition));
    for (Expr& hole : c.message.holes) RETURN_IF_ERROR(Static(&hole));
  }
  return absl::OkStatus();
}

absl::Status Resolver::CheckAxesUsed() {
  for (const AttrDef& a : def_.attrs)
    if (a.type == AttrDef::kAxis && !used_axes_.count(a.slot))
      return Fail(absl::StrCat("axis attribute ", a.name, " is used by no '@' of an operand"));
  return absl::OkStatus();
}

absl::Status FailIn(const OpDef& def, uint32_t line, uint32_t column, std::string_view message) {
  return Annotate(Invalid(absl::StrCat(def.origin, def.origin.empty() ? "" : ":", line, ":", column,
                                       def.version ? ": op " : ": rule ", def.name, ": ", message)),
                  kErrorOp, def.name);
}

absl::Status Resolve(OpDef* def) { return Resolver(def).Run(); }

}  // namespace keel::opset
