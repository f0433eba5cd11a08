// decline.cc: see decline.h.
#include "kernel/runtime/plan/decline.h"

#include "kernel/runtime/plan/device_constants.h"
#include "kernel/runtime/plan/fold.h"
#include "kernel/runtime/plan/moves.h"
#include "kernel/runtime/plan/node_facts.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

// Emits steps in place of one.
class Replacement : public BodySink {
 public:
  Replacement(Lowered& out, const Step& of) : out_(out), of_(of) {}

  absl::StatusOr<std::vector<Value>> Run() {
    if (of_.body) {
      Step step = of_;
      step.launch.reset();
      ASSIGN_OR_RETURN(step.impl,
                       ChooseImpl(
                           *out_.device, *of_.op, {}, [&] { return ViewStep(out_, of_, {}); }, of_.impl));
      return step.impl ? Add(std::move(step)) : EmitBody(*of_.body, of_.in);
    }
    return Emit(*of_.op, of_.in, of_.attrs, of_.impl);
  }
  std::vector<Step> Take() { return std::move(steps_); }

  // BodySink: nodes of the bodies of composites.
  absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                          const Attrs& attrs) override {
    ASSIGN_OR_RETURN(const OpDef* def, out_.catalogue->Find(op, 0));
    return Emit(*def, {in.begin(), in.end()}, attrs, nullptr);
  }
  absl::StatusOr<Value> Literal(DType dtype, double value) override { return AddLiteral(out_, dtype, value); }
  TensorType Type(Value value) override { return out_.values[value].type; }

 private:
  uint32_t AddValue(PlanValue value) {
    out_.values.push_back(std::move(value));
    return static_cast<uint32_t>(out_.values.size() - 1);
  }

  absl::StatusOr<std::vector<Value>> Emit(const OpDef& op, std::vector<uint32_t> in, const Attrs& attrs,
                                          const Impl* after) {
    if (IsTypedByGraph(op) || IsControl(op) || HasEffect(op)) return Declined();
    std::vector<Operand> operands = OperandsOf(in, [&](Value v) { return Type(v); });
    Step step;
    for (const Operand& o : operands) step.in_dtypes.push_back(o.type.dtype);
    Inferred inferred;
    RETURN_IF_ERROR(Infer(op, operands, attrs, out_.dims, &inferred));
    for (Inferred::Check& check : inferred.checks) out_.checks.emplace_back(std::move(check)).node = of_.name;
    if (IsAlias(op, operands, inferred))
      return std::vector<Value>{AddValue({inferred.results[0], "", Where::kAlias, in[0]})};
    step.op = &op;
    step.name = after ? of_.name : absl::StrCat(of_.name, "/", std::string(OpName(op)));
    step.source = of_.source;
    step.in = std::move(in);
    step.attrs = inferred.attrs;
    const size_t before = out_.values.size();
    for (const TensorType& type : inferred.results)
      step.out.push_back(AddValue({type, "", Where::kComputed, 0}));
    ASSIGN_OR_RETURN(step.impl,
                     ChooseImplOrMoves(
                         *out_.device, op, inferred, [&] { return ViewStep(out_, step, {}); }, after));
    if (step.impl) return Add(std::move(step));
    out_.values.resize(before);
    if (HasBody(op)) return ExpandBody(*out_.catalogue, op, step.in, attrs, out_.dims, *this);
    if (std::optional<Dim> size = KnownSize(op, step.attrs)) {
      ASSIGN_OR_RETURN(uint32_t v, AddLiteral(out_, inferred.results[0].dtype, static_cast<double>(*size)));
      return std::vector<Value>{v};
    }
    return Declined();
  }

  std::vector<Value> Add(Step step) {
    step.needs_dims = step.impl->table.prepare && !(step.impl->table.flags & KEEL_IMPL_ANY_DIMS) &&
                      MentionsSymbols(out_, step);
    std::vector<Value> out = step.out;
    steps_.push_back(std::move(step));
    return out;
  }

  absl::StatusOr<std::vector<Value>> EmitBody(const Body& body, std::span<const uint32_t> in) {
    std::vector<uint32_t> map(body.values.size(), kNoValue);
    std::copy(in.begin(), in.end(), map.begin());
    for (const auto& [number, constant] : body.constants) {
      out_.constants.push_back(constant);
      map[number] = AddValue(
          {body.values[number], "", Where::kConstant, static_cast<uint32_t>(out_.constants.size() - 1)});
    }
    auto mapped = [&](const std::vector<uint32_t>& values) {
      std::vector<uint32_t> all;
      for (uint32_t v : values) all.push_back(v == kNoValue ? kNoValue : map[v]);
      return all;
    };
    for (const Body::Node& node : body.nodes) {
      absl::StatusOr<std::vector<Value>> made = node.body
                                                    ? EmitBody(*node.body, mapped(node.in))
                                                    : Emit(*node.op, mapped(node.in), node.attrs, nullptr);
      RETURN_IF_ERROR(made.status());
      for (size_t i = 0; i < node.out.size(); i++) map[node.out[i]] = (*made)[i];
    }
    return mapped(body.results);
  }

  // Never shown: the error of the impl is.
  static absl::Status Declined() { return absl::UnimplementedError("no other impl and no body"); }

  Lowered& out_;
  const Step& of_;
  std::vector<Step> steps_;
};

// declined: set to the number of the step that is declined.
absl::Status PrepareOnce(Lowered* lowered, size_t* declined) {
  for (Step& step : lowered->steps) {
    for (auto& body : step.bodies) RETURN_IF_ERROR(PrepareOnce(body.get(), declined));
    if (step.needs_dims || step.launch) continue;
    ASSIGN_OR_RETURN(keel_node node, ViewStep(*lowered, step, {}));
    absl::StatusOr<std::shared_ptr<Launch>> made = Prepare(*lowered, step, *lowered->device, node);
    if (absl::IsUnimplemented(made.status()))
      *declined = lowered->first_step + static_cast<size_t>(&step - lowered->steps.data());
    ASSIGN_OR_RETURN(step.launch, std::move(made));
  }
  if (!lowered->accelerator || lowered->uploaded) return absl::OkStatus();
  RETURN_IF_ERROR(UploadConstants(lowered));
  for (const Constant& c : lowered->constants) DropPages(c);
  return absl::OkStatus();
}

std::shared_ptr<Lowered> Copy(const Lowered& of) {
  auto made = std::make_shared<Lowered>(of);
  for (Step& step : made->steps)
    for (auto& body : step.bodies) body = Copy(*body);
  return made;
}

absl::Status Replace(Lowered& in, size_t number) {
  const size_t s = number - in.first_step;
  if (s >= in.steps.size()) {
    for (Step& step : in.steps)
      for (auto& body : step.bodies)
        if (FindStep(*body, static_cast<uint32_t>(number))) return Replace(*body, number);
  }
  in.uploaded.reset();
  const Step& old = in.steps[s];
  Replacement replacement(in, old);
  ASSIGN_OR_RETURN(std::vector<uint32_t> values, replacement.Run());
  for (size_t i = 0; i < values.size(); i++) {
    if (values[i] == old.out[i]) continue;
    PlanValue& value = in.values[old.out[i]];
    value.where = Where::kAlias;
    value.index = values[i];
  }
  std::vector<Step> steps, made = replacement.Take();
  for (size_t i = 0; i < in.steps.size(); i++) {
    if (i != s) steps.push_back(std::move(in.steps[i]));
    for (size_t m = 0; i == s && m < made.size(); m++) steps.push_back(std::move(made[m]));
  }
  in.steps = std::move(steps);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Lowered>> ReplaceStep(const std::shared_ptr<const Lowered>& lowered,
                                                     size_t number) {
  std::shared_ptr<Lowered> made = Copy(*lowered);
  made->before = lowered;
  RETURN_IF_ERROR(Replace(*made, number));
  return made;
}

absl::Status PrepareSteps(std::shared_ptr<Lowered>* lowered) {
  for (;;) {
    size_t declined = kNoStep;
    NumberSteps(lowered->get(), 0);
    absl::Status status = PrepareOnce(lowered->get(), &declined);
    if (declined != kNoStep) {
      absl::StatusOr<std::shared_ptr<Lowered>> next = ReplaceStep(*lowered, declined);
      if (!next.ok()) return status;
      *lowered = *std::move(next);
      continue;
    }
    return status;
  }
}

}  // namespace keel
