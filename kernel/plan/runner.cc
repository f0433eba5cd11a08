// runner.cc: building a runner, and the loop that runs a plan.
#include "kernel/plan/runner.h"

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
    call.state = binding_->launches[s]->launch.state;
    call.scratch = scratch_.get();
    call.env = &env_;
    SetShapeFlags(&call);
    calls_.push_back(call);
    runs_.push_back(binding_->launches[s]->launch.run);
  }
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
  RETURN_IF_ERROR(MakeOutputs(out));
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
