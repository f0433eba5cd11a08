// runner.cc: see runner.h.
#include "kernel/runtime/plan/runner.h"

namespace keel {

absl::StatusOr<std::unique_ptr<Runner>> Runner::Make(const Lowered& lowered, const Binding& binding,
                                                     const PlanOptions& options) {
  std::unique_ptr<Runner> r(new Runner(lowered, binding));
  r->arena_ = NewBlock(r->binding_->arena_bytes);
  r->scratch_ = NewBlock(r->binding_->scratch_bytes);
  if (!r->arena_ || !r->scratch_)
    return Annotate(Exhausted("no memory for the ", r->binding_->arena_bytes + r->binding_->scratch_bytes,
                              " bytes of values and scratch of a run"),
                    kErrorHint, "run smaller inputs");
  ASSIGN_OR_RETURN(keel_dev dev, lowered.device->Open());
  r->options_ = options;
  RunState& state = r->state_;
  state.options = &r->options_;
  state.stop = options.stopper && !options.timeout_ms ? &options.stopper->asked : &r->own_stop_;
  state.env = {sizeof(keel_env), options.threads, &HostTable(), dev, nullptr, Exported(*state.stop), 0};
  r->frame_ = std::make_unique<Frame>(lowered, binding, state, r->arena_.get(), r->scratch_.get());
  return r;
}

absl::Status Runner::MakeOutputs(std::span<ArrayRef> out) {
  for (size_t i = 0; i < out.size(); i++) {
    uint32_t v = lowered_.fetches[i];
    out[i] = ArrayRef(NewResult(lowered_.values[v].type.dtype, binding_->shapes[v], binding_->counts[v]));
    if (!out[i]) return Exhausted("no memory for result \"", lowered_.values[v].name, "\"");
  }
  return absl::OkStatus();
}

absl::Status Runner::Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe,
                         void* arg, const Deadline* end) {
  RETURN_IF_ERROR(MakeOutputs(out));
  for (size_t i = 0; i < feeds.size(); i++) frame_->SetFeed(i, feeds[i]->data());
  for (size_t i = 0; i < out.size(); i++) frame_->SetOutput(i, out[i]->data());
  HostCall host;
  std::optional<Stopper::Limit> limit;
  if (options_.timeout_ms && options_.stopper)
    limit.emplace(*options_.stopper, EndOfRun(options_, end), own_stop_);
  state_.limit = limit ? &*limit : nullptr;
  state_.observe = observe;
  state_.arg = arg;
  state_.shown = observe ? Now() : 0;
  state_.host = &host;
  if (frame_->Run() == KEEL_OK) [[likely]]
    return absl::OkStatus();
  return std::exchange(state_.error, absl::OkStatus());
}

}  // namespace keel
