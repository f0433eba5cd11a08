// runner.cc: building a runner, and the loop that runs a plan.
#include "kernel/plan/runner.h"

#include <algorithm>
#include <cstring>

namespace keel {

absl::StatusOr<std::unique_ptr<Runner>> Runner::Make(const Lowered& lowered, const Binding& binding,
                                                     const PlanOptions& options) {
  std::unique_ptr<Runner> r(new Runner(lowered, binding));
  r->arena_ = NewBlock(r->binding_->arena_bytes);
  r->scratch_ = NewBlock(r->binding_->scratch_bytes);
  if (!r->arena_ || !r->scratch_)
    return Annotate(Exhausted("no memory for the ", r->binding_->arena_bytes + r->binding_->scratch_bytes,
                              " bytes that a run plans"),
                    kErrorHint, "run smaller inputs");
  ASSIGN_OR_RETURN(keel_dev dev, lowered.device->Open());
  r->options_ = options;
  if (options.stopper && !options.timeout_ms) r->stop_ = &options.stopper->asked;
  r->env_ = {sizeof(keel_env), options.threads, &HostTable(), dev, nullptr, Exported(*r->stop_), 0};
  r->BuildViews();
  r->BuildCore();
  r->BuildCalls(options);
  return r;
}

void Runner::BuildViews() {
  views_.resize(lowered_.values.size());
  for (uint32_t v = 0; v < views_.size(); v++) {
    const Storage& at = binding_->storage[v];
    keel_tensor& t = views_[v];
    t.device = {1, 0};
    t.dtype = PartsOf(lowered_.values[v].type.dtype);
    t.ndim = static_cast<int32_t>(binding_->shapes[v].size());
    t.shape = const_cast<int64_t*>(binding_->shapes[v].data());
    if (at.kind == Storage::kArena) t.data = arena_.get() + at.place;
    if (at.kind == Storage::kConstant) t.data = const_cast<void*>(lowered_.constants[at.place].data);
    if (at.kind == Storage::kFeed || at.kind == Storage::kOutput) outside_.push_back(v);
  }
}

void Runner::BuildCalls(const PlanOptions&) {
  size_t total = 0;
  for (const Step& step : lowered_.steps) total += step.in.size() + step.out.size();
  operands_.reserve(total);
  for (size_t s = 0; s < lowered_.steps.size(); s++) {
    const Step& step = lowered_.steps[s];
    size_t first = operands_.size();
    for (uint32_t v : step.in) operands_.push_back(v == kNoValue ? nullptr : &views_[v]);
    for (uint32_t v : step.out) operands_.push_back(&views_[v]);
    keel_call call{};
    call.struct_size = sizeof call;
    call.n_in = static_cast<uint16_t>(step.in.size());
    call.n_out = static_cast<uint16_t>(step.out.size());
    call.in = &operands_[first];
    call.out = operands_.data() + first + step.in.size();
    call.state = step.core ? core_of_[s] : binding_->launches[s]->launch.state;
    call.scratch = scratch_.get();
    call.env = &env_;
    SetShapeFlags(&call);
    calls_.push_back(call);
    runs_.push_back(binding_->launches[s]->launch.run);
  }
}

// What core steps need of a run, and which reads a write may forget: the variable can then be changed where
// it lies.
void Runner::BuildCore() {
  const std::vector<Step>& steps = lowered_.steps;
  bool any = false;
  for (const Step& step : steps) any = any || step.core;
  if (!any) return;
  core_of_.resize(steps.size());
  std::vector<size_t> last(lowered_.values.size(), 0);
  for (size_t s = 0; s < steps.size(); s++)
    for (uint32_t v : steps[s].in)
      if (v != kNoValue) last[lowered_.Root(v)] = s;
  for (uint32_t v : lowered_.fetches) last[lowered_.Root(v)] = steps.size();
  for (size_t s = 0; s < steps.size(); s++) {
    if (!steps[s].core) continue;
    core_.push_back(std::make_unique<CoreRun>(CoreRun{steps[s].core.get(), {}, {}, nullptr, {}}));
    core_of_[s] = core_.back().get();
    if (!steps[s].core->writes) continue;
    for (size_t r = 0; r < s; r++)
      if (steps[r].core && steps[r].core->reads && steps[r].core->variable == steps[s].core->variable &&
          last[steps[r].out[0]] < s)
        core_of_[s]->over.push_back(core_of_[r]);
    const Storage& at = binding_->storage[steps[s].in[0]];
    std::span<const int64_t> shape = steps[s].core->variable->shape();
    if (at.kind == Storage::kVariable && std::ranges::equal(binding_->shapes[steps[at.place].out[0]], shape))
      core_of_[s]->shares = core_of_[at.place];
  }
  for (uint32_t v = 0; v < views_.size(); v++)
    if (const Storage& at = binding_->storage[v];
        at.kind == Storage::kVariable || at.kind == Storage::kAssigned)
      core_of_[at.place]->views.push_back(&views_[v]);
}

absl::Status Runner::MakeAssigned() {
  for (const auto& run : core_) {
    const Core& core = *run->core;
    if (!core.takes_array || run->views.empty()) continue;
    ASSIGN_OR_RETURN(run->array, NewArray(core.variable->dtype(), core.variable->shape(), false));
    for (keel_tensor* view : run->views) view->data = run->array->data();
  }
  return absl::OkStatus();
}

absl::Status Runner::MakeOutputs(std::span<ArrayRef> out) {
  for (size_t i = 0; i < out.size(); i++) {
    uint32_t v = lowered_.fetches[i];
    out[i] = ArrayRef(NewResult(lowered_.values[v].type.dtype, binding_->shapes[v], binding_->counts[v]));
    if (!out[i]) return Exhausted("no memory for result \"", lowered_.values[v].name, "\"");
  }
  return absl::OkStatus();
}

void Runner::Connect(std::span<keel_array* const> feeds, std::span<ArrayRef> out) {
  for (uint32_t v : outside_) {
    const Storage& at = binding_->storage[v];
    views_[v].data = at.kind == Storage::kFeed ? feeds[at.place]->data() : out[at.place]->data();
  }
}

// A launch failed, or the run was told to stop; an impl that stopped half-way need not say so.
absl::Status Runner::EndEarly(const HostCall& host, keel_rc rc, size_t step) const {
  const Step& at = lowered_.steps[step];
  if (rc != KEEL_OK && rc != KEEL_CANCELLED) return RunError(host, rc, at);
  return Stopped(at.name, options_);
}

absl::Status Runner::Launches(Observe observe, void* arg) {
  HostCall host;
  for (size_t s = 0; s < calls_.size(); s++) {
    const keel_call& call = calls_[s];
    // An impl need not think of results without elements, when it has one result.
    if (call.count || call.n_out != 1) {
      keel_rc rc = runs_[s](&call);
      if (rc != KEEL_OK || stop_->load(std::memory_order_relaxed)) [[unlikely]]
        return EndEarly(host, rc, s);
    }
    if (limit_ && limit_->Over()) return EndEarly(host, KEEL_CANCELLED, s);
    if (observe && !observe(arg, s, call))
      return Error(absl::StatusCode::kCancelled, "stopped after \"", lowered_.steps[s].name,
                   "\" by its observer");
  }
  return absl::OkStatus();
}

void Runner::CopyOutputs(std::span<ArrayRef> out) {
  for (size_t i = 0; i < out.size(); i++)
    if (binding_->output_source[i] != kNoValue && out[i]->count)
      std::memcpy(out[i]->data(), views_[binding_->output_source[i]].data, out[i]->bytes());
}

absl::Status Runner::Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe,
                         void* arg, const Deadline* end) {
  struct Release {  // at the end, however it comes
    Runner& runner;
    ~Release() {
      for (const auto& run : runner.core_) run->array = {};
    }
  } release{*this};
  RETURN_IF_ERROR(MakeOutputs(out));
  RETURN_IF_ERROR(MakeAssigned());
  Connect(feeds, out);
  std::optional<Stopper::Limit> limit;
  if (options_.timeout_ms && options_.stopper) {
    limit.emplace(*options_.stopper, EndOfRun(options_, end), own_stop_);
    limit_ = &*limit;
  }
  absl::Status ran = Launches(observe, arg);
  limit_ = nullptr;
  RETURN_IF_ERROR(ran);
  CopyOutputs(out);
  return absl::OkStatus();
}

}  // namespace keel
