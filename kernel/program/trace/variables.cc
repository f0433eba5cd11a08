// variables.cc: reads, writes and initial values of variables in traces.
#include "kernel/base/free_name.h"
#include "kernel/language/graph/graph_sink.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/program/trace/trace.h"
#include "kernel/runtime/plan/make_plan.h"

namespace keel {

// Adds the variable under its name, or else `name`, or else v0, v1 ...; a taken name gets a numeric suffix.
absl::StatusOr<uint32_t> Trace::NumberOf(const std::shared_ptr<Variable>& variable, std::string_view name) {
  const std::vector<ModuleVariable>& all = module_->variables;
  for (uint32_t v = 0; v < all.size(); v++)
    if (all[v].storage == variable) return v;
  std::string own(variable->name().empty() ? name : variable->name());
  return module_->AddVariable(
      FreeName(own.empty() ? absl::StrCat("v", all.size()) : own,
               [&](const std::string& name) { return module_->FindVariable(name).ok(); }),
      variable);
}

// The node is added in program order. A variable without a write since its last read is not read again.
absl::StatusOr<ArrayRef> Trace::Read(const std::shared_ptr<Variable>& variable) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("read a variable"));
  ASSIGN_OR_RETURN(uint32_t number, NumberOf(variable));
  if (auto it = current_reads_.find(number); it != current_reads_.end()) return Symbol(it->second);
  if (is_branch_ && !written_.contains(number)) {  // same value as before the branch
    ASSIGN_OR_RETURN(ArrayRef outer, parent_->Read(variable));
    ASSIGN_OR_RETURN(ValueId value, ValueFor(outer.get()));
    current_reads_[number] = value;
    return Symbol(value);
  }
  ASSIGN_OR_RETURN(std::vector<ValueId> read, Add("read", {}, MakeAttrs({{"var", KEEL_ATTR_VAR, number}})));
  ValueId value = read[0];
  current_reads_[number] = value;
  links_.push_back({value, variable, {}});
  return Symbol(value);
}

absl::Status Trace::Write(std::string_view op, const std::shared_ptr<Variable>& variable, keel_array* value) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("write a variable"));
  ASSIGN_OR_RETURN(uint32_t number, NumberOf(variable));
  ASSIGN_OR_RETURN(ValueId in, ValueFor(value));
  return Add(op, {in}, MakeAttrs({{"var", KEEL_ATTR_VAR, number}})).status();
}

absl::Status Trace::MayMakeVariable() const {
  RETURN_IF_ERROR(CheckOpen("create a variable"));
  if (allows_variables_) return absl::OkStatus();
  return Annotate(
      Error(absl::StatusCode::kFailedPrecondition, "function \"", graph_->name,
            "\" creates a variable, but was traced before: each trace would create another variable"),
      kErrorHint, "create it in the first call only and keep it, or create it outside the function");
}

// Walks back from the value. The error names the path from a parameter or effect to the value.
absl::Status Trace::CheckConstant(ValueId value) const {
  std::vector<ValueId> user(graph_->values.size(), kNoValue), todo{value};
  auto refuse = [&](std::string_view what, ValueId v) {
    std::string path = graph_->ValueName(v);
    for (; v != value; absl::StrAppend(&path, " -> ", graph_->ValueName(v))) v = user[v];
    return Annotate(Invalid("a variable's initial value depends on ", what, " of \"", graph_->name,
                            "\": ", path, "; it is computed once, from constants and shapes"),
                    kErrorHint, "create the variable with a known value, then assign the computed value");
  };
  while (!todo.empty()) {
    ValueId v = todo.back();
    todo.pop_back();
    const Value& at = graph_->values[v];
    if (at.kind == ValueKind::kParam) return refuse(absl::StrCat("parameter \"", at.name, "\""), v);
    if (at.kind != ValueKind::kResult) continue;
    const Node& node = graph_->nodes[at.index];
    if (HasAnyEffect(*graph_, node)) return refuse(absl::StrCat("an effect, ", OpName(*node.op)), v);
    for (ValueId in : node.in) {
      if (in == kNoValue || in == value || user[in] != kNoValue) continue;
      user[in] = v;
      todo.push_back(in);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ArrayRef> Trace::Evaluate(keel_array* array, Device* device, const PlanOptions& options) {
  std::lock_guard lock(*mutex_);
  ASSIGN_OR_RETURN(ValueId value, ValueFor(array));
  RETURN_IF_ERROR(CheckConstant(value));
  const TensorType& type = graph_->values[value].type;
  for (Dim d : type.dims)
    if (IsSymbolic(d))
      return Invalid("a variable's initial value is ", Print(type, module_->dims),
                     ": its sizes must be numbers");
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, MakePlan({graph_, device, {}, {&value, 1}, {}}, options));
  ArrayRef made;
  RETURN_IF_ERROR(plan->Run({}, {&made, 1}));
  return made;
}

}  // namespace keel
