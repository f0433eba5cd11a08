// bind.cc: solves symbols from the fed shapes, computes the sizes of all values, evaluates the recorded
// checks and prepares launches.
#include "kernel/runtime/plan/bind.h"

#include "absl/strings/str_join.h"
#include "kernel/base/align.h"
#include "kernel/runtime/device/accelerator.h"
#include "kernel/runtime/plan/device_runner.h"
#include "kernel/runtime/plan/lanes.h"
#include "kernel/runtime/plan/order.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

constexpr int64_t kUnbound = -1;

std::string FedError(const Lowered& lowered, uint32_t value, std::span<const int64_t> got) {
  const PlanValue& v = lowered.values[value];
  return absl::StrCat("Cannot feed value of shape [", absl::StrJoin(got, ", "), "] for \"", v.name,
                      "\", which is ", Print(v.type, lowered.dims));
}

// Solves `expression` == `got` for its only unbound symbol; the expression must be linear in it.
absl::Status Solve(const Lowered& lowered, Dim expression, int64_t got, std::vector<int64_t>* symbols) {
  std::vector<size_t> mentioned, open;
  lowered.dims.Symbols(expression, &mentioned);
  for (size_t s : mentioned)
    if ((*symbols)[s] == kUnbound) open.push_back(s);
  if (open.empty()) return absl::OkStatus();
  std::string text = lowered.dims.Print(expression);
  if (open.size() > 1) return Invalid("dim ", text, " = ", got, " has more than one unknown symbol");
  std::vector<int64_t> trial = *symbols;
  trial[open[0]] = 0;
  ASSIGN_OR_RETURN(int64_t at0, lowered.dims.Evaluate(expression, trial));
  trial[open[0]] = 1;
  ASSIGN_OR_RETURN(int64_t at1, lowered.dims.Evaluate(expression, trial));
  int64_t slope = at1 - at0;
  if (slope <= 0 || got < at0 || (got - at0) % slope)
    return Invalid("no size of \"", lowered.dims.symbol_name(open[0]), "\" makes dim ", text, " equal to ",
                   got);
  (*symbols)[open[0]] = (got - at0) / slope;
  return absl::OkStatus();
}

absl::Status BindFeed(const Lowered& lowered, uint32_t value, std::span<const int64_t> got, bool bare,
                      std::vector<int64_t>* symbols) {
  const Dims& dims = lowered.values[value].type.dims;
  if (dims.size() != got.size())
    return Invalid(FedError(lowered, value, got), " (", got.size(), " dims for ", dims.size(), ")");
  for (size_t d = 0; d < dims.size(); d++) {
    if (!IsSymbolic(dims[d])) {
      if (dims[d] != got[d])
        return Invalid(FedError(lowered, value, got), ": dim ", d, " is ", got[d], ", not ", dims[d]);
      continue;
    }
    std::optional<size_t> symbol = lowered.dims.symbol_index(dims[d]);
    if (symbol.has_value() != bare) continue;
    if (!symbol) {
      absl::Status solved = Solve(lowered, dims[d], got[d], symbols);
      if (!solved.ok()) return Invalid(FedError(lowered, value, got), ": ", solved.message());
      absl::StatusOr<int64_t> want = lowered.dims.Evaluate(dims[d], *symbols);
      if (!want.ok() || *want != got[d])
        return Invalid(FedError(lowered, value, got), ": dim ", d, " is ", got[d], ", not ",
                       lowered.dims.Print(dims[d]), want.ok() ? absl::StrCat(" = ", *want) : "");
      continue;
    }
    int64_t& number = (*symbols)[*symbol];
    if (number == kUnbound) number = got[d];
    if (number != got[d])
      return Invalid(FedError(lowered, value, got), ": dim ", d, " is ", got[d],
                     ", but an earlier feed has \"", lowered.dims.symbol_name(*symbol), "\" = ", number);
  }
  return absl::OkStatus();
}

absl::Status CheckFacts(const Lowered& lowered, std::span<const int64_t> symbols) {
  for (const Inferred::Check& check : lowered.checks) {
    int64_t sides[2];
    for (int i = 0; i < 2; i++) {
      Dim d = i ? check.b : check.a;
      sides[i] = d;
      if (!IsSymbolic(d)) continue;
      ASSIGN_OR_RETURN(sides[i], lowered.dims.Evaluate(d, symbols));
    }
    if (check.equal ? sides[0] == sides[1] : sides[0] <= sides[1]) continue;
    absl::Status failed = Invalid(check.message, ": with these sizes ", sides[0],
                                  check.equal ? " is not equal to " : " is greater than ", sides[1]);
    if (!check.node.empty())
      failed = Annotate(Reword(failed, absl::StrCat("node \"", check.node, "\": ", failed.message())),
                        kErrorNode, check.node);
    if (!check.equal || (sides[0] != 1 && sides[1] != 1)) return failed;
    return Annotate(
        failed, kErrorHint,
        "a symbolic size of 1 is not broadcast: give it as a number, e.g. keel convert --dim NAME=1");
  }
  return absl::OkStatus();
}

absl::Status SetShapes(const Lowered& lowered, Binding* b) {
  for (const PlanValue& value : lowered.values) {
    std::vector<int64_t> shape;
    for (Dim d : value.type.dims) {
      shape.push_back(d);
      if (!IsSymbolic(d)) continue;
      ASSIGN_OR_RETURN(shape.back(), lowered.dims.Evaluate(d, b->symbols));
      if (shape.back() < 0)
        return Invalid("a dim of \"", value.name, "\" is ", lowered.dims.Print(d), ", which is ",
                       shape.back(), " with these sizes");
    }
    absl::StatusOr<int64_t> count = CountOf(shape, value.type.dtype);
    if (!count.ok())
      return Error(count.status().code(), "value \"", value.name, "\": ", count.status().message());
    b->shapes.push_back(std::move(shape));
    b->counts.push_back(*count);
  }
  return absl::OkStatus();
}

// Parameters of launches need memory that the host and the device share.
absl::Status CheckParams(const Lowered& lowered, const Step& step, const keel_launch& launch, Binding* b) {
  if (!lowered.accelerator) return absl::OkStatus();
  b->device->param_bytes += RoundUp(launch.param_bytes, kParamAlign);
  absl::StatusOr<Allocation> piece = lowered.accelerator->params().Allocate(launch.param_bytes, kHostFirst);
  if (piece.ok()) return lowered.accelerator->params().Free(*piece, {}), absl::OkStatus();
  return StepError(Error(piece.status().code(), "impl ", step.impl->table.name ? step.impl->table.name : "of",
                         " plugin ", step.impl->plugin->name, " needs ", launch.param_bytes,
                         " bytes of parameters for each launch: ", piece.status().message()),
                   step);
}

absl::Status PrepareLaunches(const Lowered& lowered, const PlanOptions& options, Binding* b,
                             size_t* declined) {
  b->controls.resize(lowered.steps.size());
  for (const Step& step : lowered.steps) {
    std::shared_ptr<Launch> launch = step.launch;
    if (!step.bodies.empty()) {
      auto& control = b->controls[b->launches.size()];
      ASSIGN_OR_RETURN(control, BindControl(lowered, step, *b, options, declined));
      launch = std::make_shared<Launch>();
      launch->launch.scratch_bytes = control->bytes;
    } else if (!launch) {
      ASSIGN_OR_RETURN(keel_node node, ViewStep(lowered, step, b->symbols));
      absl::StatusOr<std::shared_ptr<Launch>> made = Prepare(lowered, step, *lowered.device, node);
      if (absl::IsUnimplemented(made.status())) *declined = lowered.first_step + b->launches.size();
      ASSIGN_OR_RETURN(launch, std::move(made));
    }
    if (launch->launch.param_bytes) RETURN_IF_ERROR(CheckParams(lowered, step, launch->launch, b));
    b->scratch_bytes = std::max(b->scratch_bytes, launch->launch.scratch_bytes);
    b->launches.push_back(std::move(launch));
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const MemoryPlan& b, const PlanOptions& options) {
  uint64_t needed = b.arena_bytes + b.scratch_bytes + b.output_bytes;
  if (!options.memory || needed <= options.memory) return absl::OkStatus();
  return Annotate(
      Exhausted("a run needs ", needed, " bytes (", b.arena_bytes, " for values, ", b.scratch_bytes,
                " scratch, ", b.output_bytes, " results), the limit is ", options.memory),
      kErrorHint, "raise the option \"memory\", or run smaller inputs; `keel plan` lists the arrays");
}

// Steps of a parallel section have disjoint scratch.
void PlaceScratch(const Binding& b, MemoryPlan* plan) {
  plan->scratch_at.assign(b.launches.size(), 0);
  for (const Section& section : plan->sections) {
    uint64_t end = 0;
    for (uint32_t s : section.steps) {
      if (!section.parallel) end = 0;
      plan->scratch_at[s] = end;
      end += RoundUp(b.launches[s]->launch.scratch_bytes, kAlign);
      plan->scratch_bytes = std::max(plan->scratch_bytes, end);
    }
  }
}

// Adopts the parallel schedule unless its memory exceeds the limit or, with LaneUse::kAuto, is much larger
// than the memory of the serial schedule.
absl::Status TryLanes(const Lowered& lowered, const PlanOptions& options, Binding* b) {
  constexpr uint64_t kSlack = 1 << 20;
  MemoryPlan parallel;
  ASSIGN_OR_RETURN(parallel.sections, PlanLanes(lowered, *b, options));
  if (parallel.sections.empty()) return absl::OkStatus();
  PlaceScratch(*b, &parallel);
  parallel = PlanMemory(lowered, options, *b, parallel);
  const uint64_t serial = b->arena_bytes + b->scratch_bytes;
  const bool much = parallel.arena_bytes + parallel.scratch_bytes > serial + serial / 4 + kSlack;
  if (CheckMemory(parallel, options).ok() && !(much && options.lanes == LaneUse::kAuto))
    static_cast<MemoryPlan&>(*b) = std::move(parallel);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> BindSymbols(const Lowered& lowered,
                                                 std::span<const std::span<const int64_t>> fed,
                                                 const KnownSymbols* known) {
  std::vector<int64_t> symbols(lowered.dims.symbol_count(), kUnbound);
  for (size_t s = 0; known && s < symbols.size(); s++) symbols[s] = (*known)[s].value_or(kUnbound);
  for (bool bare : {true, false})
    for (size_t i = 0; i < fed.size(); i++)
      RETURN_IF_ERROR(BindFeed(lowered, lowered.feeds[i], fed[i], bare, &symbols));
  for (size_t s = 0; known && s < symbols.size(); s++)
    if (symbols[s] == kUnbound)
      return Invalid("the operands of the body do not determine the size \"", lowered.dims.symbol_name(s),
                     "\"");
  for (int64_t& s : symbols)
    if (s == kUnbound) s = 0;  // no step depends on it: otherwise SetShapes would need a feed
  return symbols;
}

absl::StatusOr<std::shared_ptr<Binding>> Bind(const Lowered& lowered, std::vector<int64_t> symbols,
                                              const PlanOptions& options, size_t* declined) {
  auto b = std::make_shared<Binding>();
  b->symbols = std::move(symbols);
  if (lowered.accelerator) b->device = std::make_shared<DevicePool>(lowered.accelerator);
  RETURN_IF_ERROR(CheckFacts(lowered, b->symbols));
  RETURN_IF_ERROR(SetShapes(lowered, b.get()));
  static_cast<MemoryPlan&>(*b) = PlanMemory(lowered, options, *b, {});
  RETURN_IF_ERROR(CheckMemory(*b, options));
  RETURN_IF_ERROR(PrepareLaunches(lowered, options, b.get(), declined));
  RETURN_IF_ERROR(CheckMemory(*b, options));
  RETURN_IF_ERROR(TryLanes(lowered, options, b.get()));
  OrderLaunches(lowered, options, b.get());
  if (b->device) b->device->records = MayRecord(lowered, *b, options);
  return b;
}

}  // namespace keel
