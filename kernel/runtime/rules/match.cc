// match.cc: one rule at one node: compares the nodes with the pattern, which binds names; reads the
// attributes; checks the conditions; builds the replacement. Operands of commutative ops are tried in both
// orders: each attempt starts from the beginning with another set of choices.
#include <cmath>
#include <cstring>

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/element.h"
#include "kernel/language/opset/compare.h"
#include "kernel/language/opset/expander.h"
#include "kernel/runtime/rules/rules.h"

namespace keel::rules {
namespace {

using opset::Expr;
using opset::Val;

class Attempt : public opset::LocalDims, public BodySink {
 public:
  Attempt(const OpDef& rule, keel_edit* edit) : rule_(rule), edit_(edit), graph_(*edit->rewriter) {}

  absl::StatusOr<Outcome> Run(NodeId root) {
    do {
      values_.assign(rule_.operands.size(), kNoValue);
      values_[0] = graph_.Find(root)->out[0];
      calls_.clear();
      step_ = 0;
      if (!Matches(rule_.match[0].values[0], values_[0])) continue;
      opset::Env env(rule_, edit_->module->dims);
      if (!Holds(env)) continue;
      ASSIGN_OR_RETURN(Outcome outcome, Build(env, root));
      if (outcome != Outcome::kNone) return outcome;
    } while (NextChoice());
    return Outcome::kNone;
  }

 private:
  const keel::Value& At(ValueId v) const { return edit_->graph->values[v]; }

  // The choices of one attempt, first choice in the highest bit. The next attempt changes the last choice
  // that can change.
  bool Choose() { return step_ < kMaxChoices && choices_ >> (kMaxChoices - ++step_) & 1; }
  bool NextChoice() {
    uint32_t last = 1u << (kMaxChoices - step_);
    choices_ = (choices_ & ~(last - 1)) + last;
    return step_ && choices_ < 1u << kMaxChoices;
  }

  bool Matches(const Expr& e, ValueId v) {
    if (e.kind == Expr::kName && e.ref == Expr::kNothing) return v == kNoValue;  // none
    if (v == kNoValue) return false;
    if (e.kind == Expr::kName && e.ref == Expr::kOperand) return MatchesName(e, v);
    std::string_view op = PatternOp(e);
    if (op.empty())
      return IsNumber(v, e.kind == Expr::kInt   ? static_cast<double>(e.i)
                         : e.ref == Expr::kBool ? e.index
                                                : e.f);
    NodeId n = graph_.Producer(v);
    const keel::Node* node = n == kNoValue ? nullptr : graph_.Find(n);
    if (!node || node->op->name != op || node->in.size() > e.parts.size()) return false;
    if (!e.attrs.empty()) calls_.emplace_back(&e, node);
    bool swap = Has(*node->op, Trait::kCommutative) && node->in[0] != node->in[1] && Choose();
    for (size_t i = 0; i < e.parts.size(); i++)
      if (!Matches(e.parts[i], i < node->in.size() ? node->in[swap ? 1 - i : i] : kNoValue)) return false;
    return true;
  }

  bool MatchesName(const Expr& e, ValueId v) {
    ValueId& bound = values_[e.index];
    if (bound != kNoValue) return bound == v;
    bound = v;
    for (const opset::Statement& s : rule_.match)
      if (s.slot == e.index) return Matches(s.values[0], v);
    return true;
  }

  // The first element if all elements are bitwise equal to it, else null.
  const void* Uniform(ValueId v) const {
    const keel::Value& value = At(v);
    if (value.kind != ValueKind::kConstant || graph_.Fed(v)) return nullptr;
    const Constant& c = edit_->module->constants[value.index];
    if (IsPacked(c.type.dtype)) return nullptr;
    const auto* bytes = static_cast<const char*>(c.data);
    size_t size = SizeOf(c.type.dtype);
    return c.bytes && !std::memcmp(bytes, bytes + size, c.bytes - size) ? c.data : nullptr;
  }

  // The sign of zero matters; integers have no -0.
  bool IsNumber(ValueId v, double number) const {
    DType dtype = At(v).type.dtype;
    uint64_t element = 0;
    if (!IsFloating(dtype) && (number != std::trunc(number) || (number == 0 && std::signbit(number))))
      return false;
    if (At(v).kind != ValueKind::kConstant || !ElementFromDouble(dtype, number, &element).ok()) return false;
    if (dtype == DType::kBool && number != 0 && number != 1) return false;
    const void* first = Uniform(v);
    return first && !std::memcmp(first, &element, SizeOf(dtype));
  }

  // Binds attribute names and checks all conditions. A condition that depends on symbols does not hold.
  bool Holds(opset::Env& env) {
    for (ValueId v : values_)
      if (v == kNoValue) return false;
    types_ = OperandsOf(values_, [&](Value v) { return Type(v); });
    env.operands = types_;
    env.locals = this;
    std::vector<Inferred::Check> unknown;
    env.checks = &unknown;
    for (bool bind : {true, false})
      for (const auto& [call, node] : calls_)
        if (!Attributes(env, *call, *node, bind)) return false;
    for (const opset::CheckDef& check : rule_.checks) {
      bool holds = false;
      if (!opset::EvalBool(check.condition, env, &holds).ok() || !holds) return false;
    }
    return unknown.empty();
  }

  // bind: binds new names; otherwise compares the values.
  bool Attributes(opset::Env& env, const Expr& call, const keel::Node& node, bool bind) {
    opset::Env own(*node.op, env.dims);
    std::vector<Operand> operands = OperandsOf(node.in, [&](Value v) { return Type(v); });
    own.operands = operands;
    Inferred inferred;
    if (!opset::InferInto(own, node.attrs, &inferred).ok()) return false;
    for (const auto& [name, wanted] : call.attrs)
      for (const opset::AttrDef& a : node.op->attrs) {
        if (a.name != name) continue;
        const Val& got = own.slots[a.slot];
        Val* slot =
            wanted.kind == Expr::kName && wanted.ref == Expr::kSlot ? &env.slots[wanted.index] : nullptr;
        if (bind && slot && slot->kind == Val::kNone) *slot = got;
        if (bind) continue;
        Val other;
        opset::Truth same = opset::Truth::kFalse;
        if (!opset::Eval(wanted, env, &other).ok() ||
            !opset::CompareVals(env, opset::BinOp::kEq, got, other, &same).ok() ||
            same != opset::Truth::kTrue)
          return false;
      }
    return true;
  }

  absl::StatusOr<Outcome> Build(opset::Env& env, NodeId root) {
    std::vector<Inferred::Check> unknown;
    env.checks = &unknown;
    RETURN_IF_ERROR(graph_.Before(root));
    absl::StatusOr<ValueId> built = Write(env);
    if (absl::IsResourceExhausted(built.status())) return built.status();
    // The first edit creates the pass's private copy, whose dims apply from then on.
    if (edit_->module != module_) {
      module_ = edit_->module;
      return Attempt(rule_, edit_).Run(root);
    }
    ValueId old = values_[0];
    if (!built.ok() || *built == old || !(At(*built).type == At(old).type)) return Outcome::kNone;
    if (rule_.when_supported && !graph_.Supported(graph_.Producer(*built))) return Outcome::kNone;
    absl::Status status = graph_.Replace(old, *built);
    if (status.ok()) return Outcome::kEdited;
    if (absl::IsFailedPrecondition(status)) return Outcome::kStop;
    return absl::IsInvalidArgument(status) ? Outcome::kNone : absl::StatusOr<Outcome>(status);
  }

  absl::StatusOr<ValueId> Write(opset::Env& env) {
    opset::Expander expander(*edit_->module->catalogue, env, *this);
    expander.BindOperands(values_);
    ASSIGN_OR_RETURN(const opset::Statement* result, expander.Run(rule_.body, false));
    ASSIGN_OR_RETURN(opset::BodyValue v, expander.ValueOf(result->values[0]));
    if (v.kind == opset::BodyValue::kInt || v.kind == opset::BodyValue::kFloat)
      return expander.Filled(At(values_[0]).type, v.number);
    return v.value == kNone ? absl::StatusOr<ValueId>(Invalid("the rule builds no value")) : v.value;
  }

  // Facts about matched values, for conditions.
  absl::StatusOr<Dims> DimsOf(const std::string& name) override { return OutsideRule(name); }
  absl::StatusOr<bool> IsGiven(const std::string& name) override { return OutsideRule(name); }
  absl::Status Query(std::string_view function, uint16_t operand, Val* out) override {
    ValueId v = values_[operand];
    DType dtype = At(v).type.dtype;
    const void* first = function == "uses" ? nullptr : Uniform(v);
    double number = first ? ElementToDouble(dtype, first) : 0;
    out->kind = function == "uses" ? Val::kInt : Val::kBool;
    if (function == "uses") {
      out->i = int64_t{graph_.Uses(v)} + graph_.Fetched(v);
    } else if (function == "constant") {
      out->i = At(v).kind == ValueKind::kConstant && !graph_.Fed(v);
    } else if (function == "invertible") {
      out->i = first && IsFloating(dtype) && Invertible(dtype, number);
    } else if (!first || std::fabs(number) > 0x1p53) {
      return Invalid("not a number");
    } else {
      out->kind = IsFloating(dtype) ? Val::kFloat : Val::kInt;
      out->f = number;
      out->i = static_cast<int64_t>(IsFloating(dtype) ? 0 : number);
    }
    return absl::OkStatus();
  }
  // Whether 1 / number is exact and normal. Then a quotient equals the product with it.
  static bool Invertible(DType dtype, double number) {
    int power = 0, most = dtype == DType::kF64 ? 1000 : dtype == DType::kF16 ? 12 : 120;
    return std::fabs(std::frexp(number, &power)) == 0.5 && std::abs(power - 1) <= most;
  }

  // BodySink: the nodes of the replacement.
  absl::StatusOr<std::vector<ValueId>> Node(std::string_view op, std::span<const ValueId> in,
                                            const Attrs& attrs) override {
    std::string name(op);
    std::vector<const char*> names;
    std::vector<keel_attr> views;
    for (const Attr& a : attrs) {
      names.push_back(a.name.c_str());
      views.push_back(ViewAttr(a.value));
    }
    keel_node_spec spec{sizeof spec,
                        0,
                        name.c_str(),
                        nullptr,
                        in.data(),
                        names.data(),
                        views.data(),
                        static_cast<uint32_t>(in.size()),
                        static_cast<uint32_t>(views.size())};
    ValueId out = kNoValue;
    RETURN_IF_ERROR(graph_.AddNode(spec, {&out, 1}));
    ASSIGN_OR_RETURN(const OpDef* def, edit_->module->catalogue->Find(op, 0));
    bool idle = Has(*def, Trait::kNoopIfSame) && !in.empty() && At(in[0]).type == At(out).type;
    return std::vector<ValueId>{idle ? in[0] : out};
  }
  absl::StatusOr<ValueId> Literal(DType dtype, double value) override {
    uint64_t element = 0;
    RETURN_IF_ERROR(ElementFromDouble(dtype, value, &element));
    return graph_.AddConstant(ScalarOf(dtype, &element));
  }
  TensorType Type(ValueId v) override { return At(v).type; }

  static constexpr uint32_t kMaxChoices = 8;  // further commutative nodes match in the written order only
  const OpDef& rule_;
  keel_edit* edit_;
  Rewriter& graph_;
  const Module* module_ = edit_->module;
  std::vector<ValueId> values_;                                   // by operand of the rule
  std::vector<Operand> types_;                                    // their types
  std::vector<std::pair<const Expr*, const keel::Node*>> calls_;  // calls with attributes to match
  uint32_t choices_ = 0, step_ = 0;  // one bit per choice: whether the operands are swapped
};

}  // namespace

absl::StatusOr<Outcome> Apply(const OpDef& rule, keel_edit* edit, NodeId node) {
  return Attempt(rule, edit).Run(node);
}

}  // namespace keel::rules
