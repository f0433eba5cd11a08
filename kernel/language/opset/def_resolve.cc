// def_resolve.cc: replaces names by slots and rejects invalid definitions.

#include <algorithm>
#include <set>
#include <utility>

#include "kernel/language/opset/def.h"
#include "kernel/language/opset/functions.h"
#include "kernel/language/opset/infer_internal.h"

namespace keel::opset {
namespace {

class Resolver {
 public:
  explicit Resolver(OpDef* def) : def_(*def) {}

  absl::Status Run() {
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

 private:
  absl::Status Fail(std::string_view message) const {
    return Annotate(Invalid(def_.origin, def_.origin.empty() ? "" : ": ", "op ", def_.name, ": ", message),
                    kErrorOp, def_.name);
  }
  absl::Status FailAt(const Expr& e, std::string_view message) const {
    return FailIn(def_, e.line, e.column, message);
  }

  uint16_t FindSlot(std::string_view name) const {
    auto place = std::find(def_.slots.begin(), def_.slots.end(), name);
    return place == def_.slots.end() ? kNoSlot : static_cast<uint16_t>(place - def_.slots.begin());
  }
  absl::StatusOr<uint16_t> MakeSlot(std::string_view name) {
    if (uint16_t found = FindSlot(name); found != kNoSlot) return found;
    if (def_.slots.size() >= kMaxOpSlots) return Fail(absl::StrCat("more than ", kMaxOpSlots, " names"));
    def_.slots.emplace_back(name);
    def_.group_length.push_back(kNoSlot);
    return static_cast<uint16_t>(def_.slots.size() - 1);
  }
  AttrDef* FindAttr(std::string_view name) {
    for (AttrDef& a : def_.attrs)
      if (a.name == name) return &a;
    return nullptr;
  }

  absl::Status Attributes() {
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
  absl::Status Variables() {
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
    if (on_var && (!on || on->type != AttrDef::kVar))
      return Fail("its effect requires a variable: read(var)");
    return absl::OkStatus();
  }

  absl::Status Operands() {
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
    return absl::OkStatus();
  }

  absl::Status OperandPattern(Pattern* p, const OperandDef& o, std::set<uint16_t>* bound) {
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
  absl::Status Items(Pattern* p, std::string_view where, bool variadic, std::set<uint16_t>* bound) {
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

  absl::Status ResolveDType(Pattern* p) {
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

  absl::Status Shapes() {
    for (AttrDef& a : def_.attrs)
      if (a.type == AttrDef::kShape) RETURN_IF_ERROR(Items(&a.shape, a.name, false, &bound_));
    return absl::OkStatus();
  }

  absl::Status Groups() {
    for (AttrDef& a : def_.attrs) {
      if (a.group_name.empty()) continue;
      a.group = FindSlot(a.group_name);
      if (a.group == kNoSlot || (a.type != AttrDef::kRankOf && !bound_.count(a.group)))
        return Fail(absl::StrCat("attribute ", a.name, ": no operand has the group ", a.group_name));
    }
    return absl::OkStatus();
  }

  absl::Status Defaults() {
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

  absl::Status Results() {
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

  absl::Status Checks() {
    for (CheckDef& c : def_.checks) {
      RETURN_IF_ERROR(Static(&c.condition));
      for (Expr& hole : c.message.holes) RETURN_IF_ERROR(Static(&hole));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAxesUsed() {
    for (const AttrDef& a : def_.attrs)
      if (a.type == AttrDef::kAxis && !used_axes_.count(a.slot))
        return Fail(absl::StrCat("axis attribute ", a.name, " is used by no '@' of an operand"));
    return absl::OkStatus();
  }

  // Resolves a static expression. words: undefined names are allowed, as enum choices in attributes of calls.
  absl::Status Static(Expr* e, bool words = false) {
    if (e->kind == Expr::kName) return StaticName(e, words);
    if (e->kind == Expr::kCall) return StaticCall(e);
    for (Expr& part : e->parts) RETURN_IF_ERROR(Static(&part, words && e->kind == Expr::kCond));
    return absl::OkStatus();
  }

  bool Bind(Expr* e) {
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

  absl::Status StaticName(Expr* e, bool words) {
    if (Bind(e) || words) return absl::OkStatus();
    return FailAt(*e, absl::StrCat("'", e->text, "' is not defined"));
  }

  absl::Status StaticCall(Expr* e) {
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
  absl::Status Value(Expr* e) {
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

  absl::Status ResolveBlock(Block* block, size_t returns, std::string_view what) {
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

  absl::Status Blocks() {
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

  // Resolves a rewrite rule. Value names become operands, new attribute names become slots; operand 0 is the
  // result of the whole pattern.
  absl::Status Rule() {
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

  void NewOperand(std::string_view name) {
    def_.operands.emplace_back().name = name;
    def_.operands.back().patterns.emplace_back().any = true;
  }

  absl::Status ResolvePattern(Expr* e) {
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
  absl::Status ResolvePatternName(Expr* e) {
    constexpr std::string_view kWords[] = {"none", "inf", "nan", "true", "false"};
    if (std::find(std::begin(kWords), std::end(kWords), e->text) != std::end(kWords)) return Value(e);
    if (e->text == "result")
      return FailAt(*e, "'result' is reserved for the whole pattern; use another name");
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

  OpDef& def_;
  std::vector<Expr*> attrs_;  // of a pattern
  std::set<uint16_t> bound_, used_axes_;
  std::set<std::string> locals_;
};

}  // namespace

absl::Status FailIn(const OpDef& def, uint32_t line, uint32_t column, std::string_view message) {
  return Annotate(Invalid(absl::StrCat(def.origin, def.origin.empty() ? "" : ":", line, ":", column,
                                       def.version ? ": op " : ": rule ", def.name, ": ", message)),
                  kErrorOp, def.name);
}

absl::Status Resolve(OpDef* def) { return Resolver(def).Run(); }

}  // namespace keel::opset
