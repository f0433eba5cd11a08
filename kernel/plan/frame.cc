// frame.cc: building a frame, and the loop that runs it.
#include "kernel/plan/frame.h"

#include <cstring>

#include "kernel/device/accelerator.h"
#include "kernel/plan/control.h"
#include "kernel/plan/device_runner.h"
#include "kernel/plan/step.h"

namespace keel {

Frame::Frame(const Lowered& lowered, const Binding& binding, RunState& state, char* arena, char* scratch)
    : lowered_(lowered), binding_(binding), state_(state) {
  BuildViews(arena);
  BuildOutputs();
  BuildCalls(scratch);
}

Frame::~Frame() = default;

void Frame::BuildViews(char* arena) {
  views_.resize(lowered_.values.size());
  feed_views_.resize(lowered_.feeds.size());
  outputs_.resize(lowered_.fetches.size());
  for (uint32_t v = 0; v < views_.size(); v++) {
    const Storage& at = binding_.storage[v];
    keel_tensor& t = views_[v];
    t.device = lowered_.accelerator ? lowered_.accelerator->id() : keel_devid{1, 0};
    t.dtype = PartsOf(lowered_.values[v].type.dtype);
    t.ndim = static_cast<int32_t>(binding_.shapes[v].size());
    t.shape = const_cast<int64_t*>(binding_.shapes[v].data());
    if (at.kind == Storage::kArena) t.data = arena + at.place;
    if (at.kind == Storage::kConstant)
      t.data = lowered_.uploaded ? reinterpret_cast<void*>(lowered_.uploaded->pieces[at.place].address())
                                 : const_cast<void*>(lowered_.constants[at.place].data);
    if (at.kind == Storage::kFeed) feed_views_[at.place].push_back(&t);
    if (at.kind == Storage::kOutput) outputs_[at.place].views.push_back(&t);
  }
}

void Frame::BuildOutputs() {
  for (size_t i = 0; i < outputs_.size(); i++) {
    uint32_t v = lowered_.fetches[i], source = binding_.output_source[i];
    outputs_[i].bytes = static_cast<uint64_t>(binding_.counts[v]) * SizeOf(lowered_.values[v].type.dtype);
    if (source == kNoValue) continue;
    outputs_[i].source = &views_[source];
    if (outputs_[i].bytes) copied_.push_back(static_cast<uint32_t>(i));
  }
}

void Frame::BuildCalls(char* scratch) {
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
    call.fault = (lowered_.first_step + static_cast<uint32_t>(s) + 1) << 8;
    call.in = operands_.data() + first;
    call.out = operands_.data() + first + step.in.size();
    call.state = binding_.launches[s]->launch.state;
    call.scratch = scratch;
    call.env = &state_.env;
    SetShapeFlags(&call);
    auto run = binding_.launches[s]->launch.run;
    if (!step.bodies.empty()) {
      controls_.push_back(MakeControl(lowered_, binding_, s, state_, scratch));
      call.state = controls_.back().get();
      call.count = 1;  // it runs even where its results have no elements
      run = RunControl;
    }
    calls_.push_back(call);
    runs_.push_back(run);
  }
}

bool Frame::PassesThrough(size_t i) const {
  uint32_t source = binding_.output_source[i];
  return source != kNoValue && binding_.storage[source].kind == Storage::kFeed &&
         binding_.storage[source].place == i;
}

keel_rc Frame::Fail(const absl::Status& status) {
  state_.error = status;
  return static_cast<keel_rc>(status.code());
}

// A launch failed, or the run was told to stop; an impl that stopped half-way need not say so.
keel_rc Frame::EndEarly(keel_rc rc, size_t step) {
  const Step& at = lowered_.steps[step];
  if (!state_.error.ok()) return static_cast<keel_rc>(state_.error.code());  // of a body
  if (rc != KEEL_OK && rc != KEEL_CANCELLED)
    return Fail(NameDevice(lowered_, RunError(*state_.host, rc, at)));
  return Fail(Stopped(at.name, *state_.options));
}

bool Frame::Watch(size_t step) {
  absl::Status status;
  if (state_.limit && state_.limit->Over()) status = Stopped(lowered_.steps[step].name, *state_.options);
  if (status.ok() && state_.machine) status = state_.machine->Launched();
  if (status.ok() && state_.observe && state_.machine) status = state_.machine->Show(*this, step);
  if (status.ok() && state_.observe && !state_.machine &&
      !state_.observe(state_.arg, lowered_, step, calls_[step]))
    status = Error(absl::StatusCode::kCancelled, "stopped after \"", lowered_.steps[step].name,
                   "\" by its observer");
  state_.error = status;
  return status.ok();
}

keel_rc Frame::CopyOutputs() {
  for (uint32_t i : copied_) {
    const Output& out = outputs_[i];
    if (out.data == out.source->data) continue;
    if (!state_.machine)
      std::memcpy(out.data, out.source->data, out.bytes);
    else if (absl::Status s = state_.machine->Copy(out.data, out.source->data, out.bytes); !s.ok())
      return Fail(s);
  }
  return KEEL_OK;
}

keel_rc Frame::Run() {
  const bool watched = state_.limit || state_.observe || state_.machine;
  for (size_t s = 0; s < calls_.size(); s++) {
    const keel_call& call = calls_[s];
    // An impl need not think of results without elements, when it has one result.
    if (call.count || call.n_out != 1) {
      keel_rc rc = runs_[s](&call);
      if (rc != KEEL_OK || state_.stop->load(std::memory_order_relaxed)) [[unlikely]]
        return EndEarly(rc, s);
    }
    if (watched && !Watch(s)) [[unlikely]]
      return static_cast<keel_rc>(state_.error.code());
  }
  return copied_.empty() ? KEEL_OK : CopyOutputs();
}

}  // namespace keel
