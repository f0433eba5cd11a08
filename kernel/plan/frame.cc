// frame.cc: building a frame, and the loop that runs it.
#include "kernel/plan/frame.h"

#include <algorithm>
#include <cstring>

#include "kernel/device/accelerator.h"
#include "kernel/plan/control.h"
#include "kernel/plan/core_there.h"
#include "kernel/plan/device_runner.h"
#include "kernel/plan/lanes.h"
#include "kernel/plan/step.h"

namespace keel {

int64_t Now() { return Stopper::Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

absl::Status RunState::Show(const Lowered& lowered, size_t step, const keel_call& call, const Moment* when) {
  const Moment last{0, shown, Now()};
  bool go_on = observe(arg, lowered, step, call, when ? *when : last);
  shown = Now();
  if (go_on) return absl::OkStatus();
  return Error(absl::StatusCode::kCancelled, "stopped after \"", lowered.steps[step].name,
               "\" by its observer");
}

Frame::Frame(const Lowered& lowered, const Binding& binding, RunState& state, char* arena, char* scratch)
    : lowered_(lowered), binding_(binding), state_(state) {
  BuildViews(arena);
  BuildOutputs();
  BuildCore();
  BuildOwn();
  BuildCalls(scratch);
  BuildSections();
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
    call.state = step.core ? core_of_[s] : binding_.launches[s]->launch.state;
    char* room = binding_.scratch_at.empty() ? scratch : scratch + binding_.scratch_at[s];
    RunState* own = own_of_.empty() ? nullptr : own_of_[s];
    call.scratch = room;
    call.env = own ? &own->env : &state_.env;
    SetShapeFlags(&call);
    auto run = binding_.launches[s]->launch.run;
    if (!step.bodies.empty()) {
      controls_.push_back(MakeControl(lowered_, binding_, s, own ? *own : state_, room));
      call.state = controls_.back().get();
      call.count = 1;  // it runs even where its results have no elements
      run = RunControl;
    }
    if (step.core && lowered_.accelerator) {
      there_.push_back(std::make_unique<CoreThere>(*core_of_[s], state_));
      call.state = there_.back().get();
      call.count = 1;
      run = CoreThere::Run;
    }
    if (!binding_.still.empty() && binding_.still[s]) {
      call.count = 0;
      run = [](const keel_call*) -> keel_rc { return KEEL_OK; };
    }
    calls_.push_back(call);
    runs_.push_back(run);
  }
}

// What runs side by side has one thread each, and fails by itself.
void Frame::BuildOwn() {
  if (binding_.sections.empty()) return;
  own_of_.resize(lowered_.steps.size());
  for (const Section& section : binding_.sections)
    for (uint32_t s : section.steps) {
      if (!section.beside) continue;
      own_.push_back(std::make_unique<RunState>(state_));
      own_.back()->env.threads = 1;
      own_of_[s] = own_.back().get();
    }
}

void Frame::BuildSections() {
  std::vector<uint32_t> job_of(lowered_.values.size(), kNoValue);  // by value: what computes it
  for (const Section& section : binding_.sections) {
    lanes_.emplace_back();
    if (!section.beside) continue;
    std::vector<Lanes::Job> jobs;
    std::ranges::fill(job_of, kNoValue);
    for (uint32_t s : section.steps) {
      auto number = static_cast<uint32_t>(jobs.size());
      Lanes::Job& job = jobs.emplace_back(Lanes::Job{s, &calls_[s], runs_[s], own_of_[s], {}, 0, {}});
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

bool Frame::PassesThrough(size_t i) const {
  uint32_t source = binding_.output_source[i];
  return source != kNoValue && binding_.storage[source].kind == Storage::kFeed &&
         binding_.storage[source].place == i && !binding_.storage[source].offset;
}

keel_rc Frame::Fail(const absl::Status& status) {
  state_.error = status;
  return static_cast<keel_rc>(status.code());
}

// A launch failed, or the run was told to stop; an impl that stopped half-way need not say so.
keel_rc Frame::EndEarly(keel_rc rc, size_t step) {
  const Step& at = lowered_.steps[step];
  if (RunState* own = own_of_.empty() ? nullptr : own_of_[step])
    state_.error = std::exchange(own->error, absl::OkStatus());
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
  if (status.ok() && state_.observe && !state_.machine) status = state_.Show(lowered_, step, calls_[step]);
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

// What core steps need of a run, and which reads a write may forget: the variable can then be changed where
// it lies.
void Frame::BuildCore() {
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
    const Storage& at = binding_.storage[steps[s].in[0]];
    std::span<const int64_t> shape = steps[s].core->variable->shape();
    if (at.kind == Storage::kVariable && std::ranges::equal(binding_.shapes[steps[at.place].out[0]], shape))
      core_of_[s]->shares = core_of_[at.place];
  }
  for (uint32_t v = 0; v < views_.size(); v++)
    if (const Storage& at = binding_.storage[v];
        at.kind == Storage::kVariable || at.kind == Storage::kAssigned)
      core_of_[at.place]->views.push_back(&views_[v]);
}

absl::Status Frame::MakeAssigned() {
  for (const auto& run : core_) {
    const Core& core = *run->core;
    if (!core.takes_array || run->views.empty()) continue;
    ASSIGN_OR_RETURN(run->array, NewArray(core.variable->dtype(), core.variable->shape(), false));
    for (keel_tensor* view : run->views) view->data = run->array->data();
  }
  return absl::OkStatus();
}

keel_rc Frame::Run() {
  if (core_.empty()) [[likely]]
    return RunSteps();
  absl::Status made = MakeAssigned();
  keel_rc rc = made.ok() ? RunSteps() : Fail(made);
  for (const auto& run : core_) run->array = {};
  return rc;
}

inline keel_rc Frame::RunStep(size_t s, bool watched) {
  const keel_call& call = calls_[s];
  // An impl need not think of results without elements, when it has one result.
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
  if (!lanes_.empty()) [[unlikely]]
    return RunSections();
  const bool watched = state_.limit || state_.observe || state_.machine;
  for (size_t s = 0; s < calls_.size(); s++)
    if (keel_rc rc = RunStep(s, watched); rc != KEEL_OK) [[unlikely]]
      return rc;
  return copied_.empty() ? KEEL_OK : CopyOutputs();
}

keel_rc Frame::RunSections() {
  const bool watched = state_.limit || state_.observe;
  for (size_t i = 0; i < lanes_.size(); i++) {
    if (lanes_[i] && lanes_[i]->Run()) {
      if (keel_rc rc = ShowLanes(*lanes_[i]); rc != KEEL_OK) return rc;
      continue;
    }
    for (uint32_t s : binding_.sections[i].steps) {
      if (own_of_[s]) own_of_[s]->Take(state_, state_.host, state_.observe);
      if (keel_rc rc = RunStep(s, watched); rc != KEEL_OK) return rc;
    }
  }
  return copied_.empty() ? KEEL_OK : CopyOutputs();
}

// What runs side by side is shown when all of it is done.
keel_rc Frame::ShowLanes(const Lanes& lanes) {
  for (const Lanes::Job& job : lanes.jobs())
    if (state_.observe)
      if (absl::Status status = state_.Show(lowered_, job.step, *job.call, &job.when); !status.ok())
        return Fail(status);
  return KEEL_OK;
}

}  // namespace keel
