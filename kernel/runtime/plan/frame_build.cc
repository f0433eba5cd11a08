// frame_build.cc: builds the views and calls of a frame.
#include "kernel/runtime/plan/frame.h"

#include <algorithm>

#include "kernel/runtime/device/accelerator.h"
#include "kernel/runtime/plan/calls.h"
#include "kernel/runtime/plan/control.h"
#include "kernel/runtime/plan/device_constants.h"
#include "kernel/runtime/plan/host_op_on_device.h"
#include "kernel/runtime/plan/lanes.h"
#include "kernel/runtime/plan/launch_with_params.h"
#include "kernel/runtime/plan/moves.h"

namespace keel {

Frame::Frame(const Lowered& lowered, const Binding& binding, RunState& state, char* arena, char* scratch)
    : lowered_(lowered), binding_(binding), state_(state) {
  BuildViews(arena);
  BuildOutputs();
  BuildCore();
  BuildLaneStates();
  BuildCalls(scratch);
  BuildSections();
}

void Frame::BuildViews(char* arena) {
  views_ =
      MakeViews(lowered_, binding_, lowered_.accelerator ? lowered_.accelerator->id() : keel_devid{1, 0});
  feed_views_.resize(lowered_.feeds.size());
  outputs_.resize(lowered_.fetches.size());
  for (uint32_t v = 0; v < views_.size(); v++) {
    const Storage& at = binding_.storage[v];
    keel_tensor& t = views_[v];
    if (at.kind == Storage::kArena) t.data = arena + at.place;
    if (at.kind == Storage::kConstant)
      t.data = lowered_.uploaded
                   ? reinterpret_cast<void*>(lowered_.uploaded->pieces[at.place].address())
                   : static_cast<char*>(const_cast<void*>(lowered_.constants[at.place].data)) + at.offset;
    if (at.kind == Storage::kFeed) feed_views_[at.place].push_back({&t, at.offset});
    if (at.kind == Storage::kOutput) outputs_[at.place].views.push_back({&t, at.offset});
  }
}

void Frame::BuildOutputs() {
  for (size_t i = 0; i < outputs_.size(); i++) {
    uint32_t v = lowered_.fetches[i], source = binding_.output_source[i];
    outputs_[i].bytes = BytesOf(lowered_, binding_, v);
    if (source == kNoValue) continue;
    outputs_[i].source = &views_[source];
    if (outputs_[i].bytes) copied_.push_back(static_cast<uint32_t>(i));
  }
}

// Null: the device runs the launch.
std::unique_ptr<OwnLaunch> Frame::MakeOwnLaunch(size_t s, RunState& state, char* scratch) {
  const Step& step = lowered_.steps[s];
  const keel_launch& launch = binding_.launches[s]->launch;
  if (!step.bodies.empty()) return MakeControl(lowered_, binding_, s, state, scratch);
  if (!lowered_.accelerator) return nullptr;
  if (step.core) return std::make_unique<HostOpOnDevice>(*core_of_[s], state);
  if (IsMoves(step)) return MakeMoves(launch, state);
  if (launch.param_bytes) return std::make_unique<LaunchWithParams>(launch, state);
  return nullptr;
}

void Frame::BuildCalls(char* scratch) {
  calls_ = MakeCalls(lowered_, binding_, views_, &state_.env, &operands_);
  for (size_t s = 0; s < calls_.size(); s++) {
    const Step& step = lowered_.steps[s];
    keel_call& call = calls_[s];
    if (step.core) call.state = core_of_[s];
    char* room = binding_.scratch_at.empty() ? scratch : scratch + binding_.scratch_at[s];
    RunState* lane = lane_state_of_.empty() ? nullptr : lane_state_of_[s];
    call.scratch = call.scratch_bytes ? room : nullptr;
    if (lane) call.env = &lane->env;
    auto run = binding_.launches[s]->launch.run;
    if (std::unique_ptr<OwnLaunch> own = MakeOwnLaunch(s, lane ? *lane : state_, room)) {
      call.state = own.get();
      if (step.core || !step.bodies.empty()) call.count = 1;  // runs even if its results are empty
      run = OwnLaunch::RunCall;
      own_launches_.push_back(std::move(own));
    }
    if (!binding_.is_noop.empty() && binding_.is_noop[s]) {
      call.count = 0;
      run = [](const keel_call*) -> keel_rc { return KEEL_OK; };
    }
    runs_.push_back(run);
  }
}

// Parallel steps run on one thread each and have separate error states.
void Frame::BuildLaneStates() {
  if (binding_.sections.empty()) return;
  lane_state_of_.resize(lowered_.steps.size());
  for (const Section& section : binding_.sections)
    for (uint32_t s : section.steps) {
      if (!section.parallel) continue;
      lane_states_.push_back(std::make_unique<RunState>(state_));
      lane_states_.back()->env.threads = 1;
      lane_state_of_[s] = lane_states_.back().get();
    }
}

void Frame::BuildSections() {
  std::vector<uint32_t> job_of(lowered_.values.size(), kNoValue);  // by value: the job that computes it
  for (const Section& section : binding_.sections) {
    lanes_.emplace_back();
    if (!section.parallel) continue;
    std::vector<Lanes::Job> jobs;
    std::ranges::fill(job_of, kNoValue);
    for (uint32_t s : section.steps) {
      auto number = static_cast<uint32_t>(jobs.size());
      Lanes::Job& job = jobs.emplace_back(Lanes::Job{s, &calls_[s], runs_[s], lane_state_of_[s], {}, 0, {}});
      for (uint32_t v : lowered_.steps[s].in) {
        uint32_t from = v == kNoValue ? kNoValue : job_of[lowered_.Root(v)];
        if (from == kNoValue) continue;
        jobs[from].next.push_back(number);
        job.waits++;
      }
      for (uint32_t v : lowered_.steps[s].out) job_of[v] = number;
    }
    lanes_.back() = std::make_unique<Lanes>(lowered_, state_, std::move(jobs));
  }
}

}  // namespace keel
