// frame.cc: runs a frame; frame_build.cc builds it.
#include "kernel/runtime/plan/frame.h"

#include <cstring>

#include "kernel/runtime/plan/lanes.h"
#include "kernel/runtime/plan/own_launch.h"
#include "kernel/runtime/plan/step.h"

namespace keel {

Frame::~Frame() = default;

bool Frame::PassesThrough(size_t i) const {
  uint32_t source = binding_.output_source[i];
  return source != kNoValue && binding_.storage[source].kind == Storage::kFeed &&
         binding_.storage[source].place == i && !binding_.storage[source].offset;
}

keel_rc Frame::Fail(const absl::Status& status) {
  state_.error = status;
  return static_cast<keel_rc>(status.code());
}

// Reports a failed launch or a stopped run. An impl may return KEEL_OK after it stopped early.
keel_rc Frame::EndEarly(keel_rc rc, size_t step) {
  const Step& at = lowered_.steps[step];
  failed_step_ = step;
  if (RunState* own = lane_state_of_.empty() ? nullptr : lane_state_of_[step])
    state_.error = std::exchange(own->error, absl::OkStatus());
  if (!state_.error.ok()) return static_cast<keel_rc>(state_.error.code());  // set by a body
  if (rc != KEEL_OK && rc != KEEL_CANCELLED)
    return Fail(NameDevice(lowered_, RunError(*state_.host, rc, at)));
  return Fail(Stopped(at.name, *state_.options));
}

bool Frame::Watch(size_t step) {
  absl::Status status;
  if (state_.limit && state_.limit->Over()) status = Stopped(lowered_.steps[step].name, *state_.options);
  if (status.ok() && state_.machine) status = state_.machine->Launched();
  if (status.ok() && state_.observe && state_.machine)
    status = state_.machine->Show(lowered_, step, calls_[step]);
  if (status.ok() && state_.observe && !state_.machine) status = state_.Show(lowered_, step, calls_[step]);
  if (!status.ok()) failed_step_ = step;
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
  if (core_.empty()) [[likely]]
    return RunSteps();
  absl::Status made = allocate_first_ ? allocate_first_->MakeArrays() : absl::OkStatus();
  keel_rc rc = made.ok() ? RunSteps() : Fail(made);
  if (rc == KEEL_OK) [[likely]] {
    for (CoreRun* run = release_last_; run; run = run->next_released) run->array = {};
  } else {
    for (CoreRun& run : core_) run.array = {};
  }
  return rc;
}

inline keel_rc Frame::RunStep(size_t s, bool watched) {
  const keel_call& call = calls_[s];
  // A launch whose only result is empty is skipped, so impls need not handle it.
  if (call.count || call.n_out != 1) {
    keel_rc rc = runs_[s](&call);
    if (rc != KEEL_OK || state_.stop->load(std::memory_order_relaxed)) [[unlikely]]
      return EndEarly(rc, s);
  }
  if (watched && !Watch(s)) [[unlikely]]
    return static_cast<keel_rc>(state_.error.code());
  return KEEL_OK;
}

keel_rc Frame::RunSteps() {
  const keel_rc rc = lanes_.empty() ? RunLaunches() : RunSections();
  return rc != KEEL_OK || copied_.empty() ? rc : CopyOutputs();
}

keel_rc Frame::RunLaunches() {
  const bool watched = state_.limit || state_.observe || state_.machine;
  for (size_t s = 0; s < calls_.size(); s++)
    if (keel_rc rc = RunStep(s, watched); rc != KEEL_OK) [[unlikely]]
      return rc;
  return KEEL_OK;
}

keel_rc Frame::RunSections() {
  const bool watched = state_.limit || state_.observe;
  for (size_t i = 0; i < lanes_.size(); i++) {
    if (lanes_[i] && lanes_[i]->Run()) {
      if (keel_rc rc = ShowLanes(*lanes_[i]); rc != KEEL_OK) return rc;
      continue;
    }
    for (uint32_t s : binding_.sections[i].steps) {
      if (lane_state_of_[s]) lane_state_of_[s]->InheritFrom(state_, state_.host, state_.observe);
      if (keel_rc rc = RunStep(s, watched); rc != KEEL_OK) return rc;
    }
  }
  return KEEL_OK;
}

// The observer is called after the whole parallel section has finished, on the thread of the run.
keel_rc Frame::ShowLanes(const Lanes& lanes) {
  for (const Lanes::Job& job : lanes.jobs())
    if (state_.observe)
      if (absl::Status status = state_.Show(lowered_, job.step, *job.call, &job.when); !status.ok())
        return Fail(status);
  return KEEL_OK;
}

}  // namespace keel
