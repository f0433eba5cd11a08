// match.cc: one rule at one node. First the nodes are compared with the pattern, which binds names; then the
// attributes are read; then the conditions must hold, and what is not known does not hold; then the body is
// written out. Operands that commute are tried both ways: each attempt runs from the start with its choices.
#include <cmath>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "kernel/graph/constant.h"
#include "kernel/graph/element.h"
#include "kernel/opset/expander.h"
#include "kernel/rules/rules.h"

namespace keel::rules {
namespace {

using opset::Val;

Val ToVal(const AttrValue& a) {
  Val v;
  v.i = a.i;
  v.f = a.f;
  v.s = a.s;
  v.list.assign(a.list.begin(), a.list.end());
  v.floats = a.floats;
  v.kind = a.kind == KEEL_ATTR_BOOL    ? Val::kBool
           : a.kind == KEEL_ATTR_F64   ? Val::kFloat
           : a.kind == KEEL_ATTR_STR   ? Val::kStr
           : a.kind == KEEL_ATTR_DTYPE ? Val::kDType
           : a.kind == KEEL_ATTR_F64S  ? Val::kFloats
           : a.kind == KEEL_ATTR_I64 || a.kind == KEEL_ATTR_DIM ? Val::kInt
                                                                : Val::kList;
  return v;
}

class Attempt : public opset::LocalDims, public BodySink {
 public:
  Attempt(const Rule& rule, keel_edit* edit) : rule_(rule), edit_(edit), graph_(*edit->rewriter) {}

  absl::StatusOr<Outcome> Run(NodeId root) {
    do {
      values_.assign(rule_.def.operands.size(), kNoValue);
      calls_.clear();
      types_.clear();
      step_ = 0;
      if (!Matches(rule_.pattern, graph_.Find(root)->out[0])) continue;
      opset::Env env(rule_.def, edit_->module->dims);
      if (!Holds(env)) continue;
      ASSIGN_OR_RETURN(Outcome outcome, Build(env, root));
      if (outcome != Outcome::kNone) return outcome;
    } while (NextChoice());
    return Outcome::kNone;
  }

 private:
  const keel::Value& At(ValueId v) const { return edit_->graph->values[v]; }

  bool Choose() {
    if (step_ == choices_.size()) choices_.push_back(false);
    return choices_[step_++];
  }
  bool NextChoice() {
    choices_.resize(step_);
    while (!choices_.empty() && choices_.back()) choices_.pop_back();
    if (choices_.empty()) return false;
    return choices_.back() = true;
  }

  bool Matches(const Pattern& p, ValueId v) {
    if (v == kNoValue || p.kind == Pattern::kNone) return v == kNoValue && p.kind == Pattern::kNone;
    if (p.name >= 0) {
      ValueId& bound = values_[static_cast<size_t>(p.name)];
      if (bound != kNoValue && bound != v) return false;
      bound = v;
    }
    if (p.kind == Pattern::kNumber) return IsNumber(v, p.number);
    return p.kind == Pattern::kAny || MatchesCall(p, graph_.Producer(v));
  }

  bool MatchesCall(const Pattern& p, NodeId n) {
    const keel::Node* node = n == kNoValue ? nullptr : graph_.Find(n);
    if (!node || node->op != p.op || node->in.size() > p.in.size()) return false;
    if (!p.attrs.empty()) calls_.emplace_back(&p, node);
    bool swap = p.commutes && node->in[0] != node->in[1] && Choose();
    for (size_t i = 0; i < p.in.size(); i++) {
      size_t k = swap && i < 2 ? 1 - i : i;
      if (!Matches(p.in[i], k < node->in.size() ? node->in[k] : kNoValue)) return false;
    }
    return true;
  }

  // The first element, if all are that one, bit by bit.
  const void* Uniform(ValueId v) const {
    const keel::Value& value = At(v);
    if (value.kind != ValueKind::kConstant || graph_.Fed(v)) return nullptr;
    const Constant& c = edit_->module->constants[value.index];
    const auto* bytes = static_cast<const char*>(c.data);
    size_t size = SizeOf(c.type.dtype);
    return c.bytes && !std::memcmp(bytes, bytes + size, c.bytes - size) ? c.data : nullptr;
  }

  // Zeros differ by their sign, and no integer is -0.
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

  // Names of attributes are bound, and all conditions hold.
  bool Holds(opset::Env& env) {
    for (ValueId v : values_) types_.push_back({Operand::kTyped, At(v).type});
    env.operands = types_;
    env.locals = this;
    std::vector<Inferred::Check> unknown;
    env.checks = &unknown;
    for (const auto& [pattern, node] : calls_) {
      attrs_.push_back(InferredAttrs(*node));
      for (const auto& [name, slot] : pattern->attrs)
        for (const Attr& a : attrs_.back())
          if (a.name == name) env.slots[slot] = ToVal(a.value);
    }
    for (const opset::CheckDef& check : rule_.def.checks) {
      bool holds = false;
      if (!opset::EvalBool(check.condition, env, &holds).ok() || !holds || !unknown.empty()) return false;
    }
    return true;
  }

  Attrs InferredAttrs(const keel::Node& node) {
    std::vector<Operand> operands = opset::TypesOf(node.in, *this);
    Inferred inferred;
    absl::Status status = Infer(*node.op, operands, node.attrs, edit_->module->dims, &inferred);
    return status.ok() ? std::move(inferred.attrs) : Attrs();
  }

  absl::StatusOr<Outcome> Build(opset::Env& env, NodeId root) {
    std::vector<Inferred::Check> unknown;
    env.checks = &unknown;
    RETURN_IF_ERROR(graph_.Before(root));
    absl::StatusOr<ValueId> built = Write(env);
    if (absl::IsResourceExhausted(built.status())) return built.status();
    if (edit_->module != module_) {  // the first node made the pass's own copy, whose dims count from then on
      module_ = edit_->module;
      return Attempt(rule_, edit_).Run(root);
    }
    ValueId old = values_[0];
    if (!built.ok() || *built == old || !(At(*built).type == At(old).type)) return Outcome::kNone;
    if (rule_.supported && !graph_.Supported(graph_.Producer(*built))) return Outcome::kNone;
    absl::Status status = graph_.Replace(old, *built);
    if (status.ok()) return Outcome::kEdited;
    if (absl::IsFailedPrecondition(status)) return Outcome::kStop;
    return absl::IsInvalidArgument(status) ? Outcome::kNone : absl::StatusOr<Outcome>(status);
  }

  absl::StatusOr<ValueId> Write(opset::Env& env) {
    opset::Expander expander(*edit_->module->catalogue, env, *this);
    expander.BindOperands(values_);
    ASSIGN_OR_RETURN(const opset::Statement* result, expander.Run(rule_.def.body, false));
    ASSIGN_OR_RETURN(opset::BodyValue v, expander.One(result->values[0]));
    if (v.kind == opset::BodyValue::kInt || v.kind == opset::BodyValue::kFloat)
      return expander.Filled(At(values_[0]).type, v.number);
    return v.value == kNone ? absl::StatusOr<ValueId>(Invalid("nothing is built")) : v.value;
  }

  // What conditions may ask of a value.
  absl::StatusOr<Dims> DimsOf(const std::string& name) override { return NotHere(name); }
  absl::StatusOr<bool> IsGiven(const std::string& name) override { return NotHere(name); }
  absl::Status Ask(std::string_view function, uint16_t operand, Val* out) override {
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
  // Is 1 / number exact, and normal? Then a quotient and the product with it are the same nearest number.
  static bool Invertible(DType dtype, double number) {
    int power = 0, most = dtype == DType::kF64 ? 1000 : dtype == DType::kF16 ? 12 : 120;
    return std::fabs(std::frexp(number, &power)) == 0.5 && std::abs(power - 1) <= most;
  }

  // Where the body is written to.
  absl::StatusOr<std::vector<ValueId>> Node(std::string_view op, std::span<const ValueId> in,
                                            const Attrs& attrs) override {
    std::string name(op);
    std::vector<const char*> names;
    std::vector<keel_attr> views;
    for (const Attr& a : attrs) {
      names.push_back(a.name.c_str());
      views.push_back(ViewAttr(a.value));
    }
    keel_node_spec spec{sizeof spec, 0,           name.c_str(), nullptr, in.data(), names.data(),
                        views.data(), static_cast<uint32_t>(in.size()), static_cast<uint32_t>(views.size())};
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

  const Rule& rule_;
  keel_edit* edit_;
  Rewriter& graph_;
  const Module* module_ = edit_->module;
  absl::InlinedVector<ValueId, 8> values_;  // by operand of the rule
  absl::InlinedVector<bool, 8> choices_;    // swap the operands? in the order in which it is asked
  size_t step_ = 0;
  std::vector<std::pair<const Pattern*, const keel::Node*>> calls_;  // whose attributes are asked for
  std::deque<Attrs> attrs_;                                          // what slots borrow words of
  std::vector<Operand> types_;
};

}  // namespace

absl::StatusOr<Outcome> Apply(const Rule& rule, keel_edit* edit, NodeId node) {
  return Attempt(rule, edit).Run(node);
}

}  // namespace keel::rules
