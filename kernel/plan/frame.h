// frame.h: the launches of one binding, of a plan or of a body, on memory of the caller. Views and calls are
// built once; a run only sets pointers and calls the launches.
//
// How to read it: RunState is shared by the frames of one runner. The launch of a control step is RunControl;
// its state is a Control (control.h), which owns the frames of its bodies.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernel/base/timeline.h"
#include "kernel/plan/binding.h"

namespace keel {

// When and where a launch ran, in nanoseconds of the steady clock.
struct Moment {
  uint32_t lane = 0;
  int64_t begin = 0, end = 0;
};

// Called after each launch, including launches in bodies; false stops the run.
using Observe = bool (*)(void* arg, const Lowered& lowered, size_t step, const keel_call& call,
                         const Moment& when);

class Frame;

// Operations on a device with its own memory, for the frames of bodies.
class Machine {
 public:
  virtual ~Machine() = default;
  // Waits and downloads to the host; returns the error if a previous launch failed. 0 bytes: only checks.
  virtual absl::Status Fetch(const void* address, void* to, uint64_t bytes) = 0;
  // Uploads from the host, after all launches that use the destination.
  virtual absl::Status Store(void* to, const void* from, uint64_t bytes) = 0;
  virtual absl::Status Copy(void* to, const void* from, uint64_t bytes) = 0;
  virtual absl::Status Zero(void* to, uint64_t bytes) = 0;
  virtual absl::Status Launched() = 0;  // after each launch of a body
  // Lets other runs use the device during `what`, which may wait for them.
  virtual absl::Status Pause(absl::FunctionRef<absl::Status()> what) = 0;
  virtual absl::Status Show(const Frame& frame, size_t step) = 0;
};

struct RunState {
  keel_env env{};
  const PlanOptions* options = nullptr;
  const StopFlag* stop = nullptr;         // the flag that launches poll
  const Stopper::Limit* limit = nullptr;  // time limit of the current run; null: none
  Observe observe = nullptr;
  void* arg = nullptr;
  int64_t shown = 0;               // time at which the observer last returned
  const HostCall* host = nullptr;  // collects error messages of impls
  Machine* machine = nullptr;      // null: host memory
  absl::Status error;              // set when a frame's Run fails

  // Calls the observer, which may stop the run. `when` null: the launch began when the observer last
  // returned.
  absl::Status Show(const Lowered& lowered, size_t step, const keel_call& call, const Moment* when = nullptr);
  // Copies the run's settings to the separate state of a parallel step.
  void InheritFrom(const RunState& run, const HostCall* call, Observe observer) {
    limit = run.limit;
    arg = run.arg;
    shown = run.shown;
    host = call;
    observe = observer;
  }
  bool Stopping() const { return stop->load(std::memory_order_relaxed) || (limit && limit->Over()); }
};

class Control;
class HostOpOnDevice;
class Lanes;

class Frame {
 public:
  // `arena` and `scratch`: at least binding.arena_bytes and scratch_bytes; must outlive the frame.
  Frame(const Lowered& lowered, const Binding& binding, RunState& state, char* arena, char* scratch);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Set the memory of feeds and results: host pointers or device addresses.
  void SetFeed(size_t i, void* data) {
    for (const View& view : feed_views_[i]) view.tensor->data = static_cast<char*>(data) + view.offset;
  }
  void SetOutput(size_t i, void* data) {
    outputs_[i].data = data;
    for (const View& view : outputs_[i].views) view.tensor->data = static_cast<char*>(data) + view.offset;
  }
  keel_rc Run();  // sets state.error on failure
  // Whether result i is feed i, unchanged, so that a loop need not copy it.
  bool PassesThrough(size_t i) const;

  const Lowered& lowered() const { return lowered_; }
  const keel_call& call(size_t step) const { return calls_[step]; }

 private:
  struct View {
    keel_tensor* tensor;
    uint64_t offset;
  };
  struct Output {
    void* data = nullptr;
    std::vector<View> views;              // of values written directly to the output
    const keel_tensor* source = nullptr;  // the value to copy from; null: written in place
    uint64_t bytes = 0;
  };
  void BuildViews(char* arena);
  void BuildOutputs();
  void BuildCalls(char* scratch);
  void BuildCore();
  void BuildCoreViews();
  void LinkCore();
  void BuildLaneStates();
  void BuildSections();
  keel_rc RunStep(size_t step, bool watched);
  keel_rc RunSteps();
  keel_rc RunSections();
  keel_rc ShowLanes(const Lanes& lanes);
  keel_rc EndEarly(keel_rc rc, size_t step);
  keel_rc Fail(const absl::Status& status);
  bool Watch(size_t step);  // time limit, device and observer, after each launch; false: stop
  keel_rc CopyOutputs();

  const Lowered& lowered_;
  const Binding& binding_;
  RunState& state_;
  std::vector<keel_tensor> views_;  // by value
  std::vector<keel_tensor*> operands_;
  std::vector<keel_call> calls_;
  std::vector<keel_rc (*)(const keel_call*)> runs_;
  std::vector<std::vector<View>> feed_views_;
  std::vector<Output> outputs_;
  std::vector<uint32_t> copied_;  // outputs with a source
  std::vector<std::unique_ptr<Control>> controls_;
  std::vector<std::unique_ptr<RunState>> lane_states_;  // states of parallel steps
  std::vector<RunState*> lane_state_of_;                // by step, empty without sections; null: state_
  std::vector<std::unique_ptr<Lanes>> lanes_;           // by section; null: serial
  std::vector<CoreRun> core_;                           // of core steps
  std::vector<CoreRun*> core_of_;                       // by step, empty without core steps
  std::vector<keel_tensor*> core_views_;
  // Lists of core runs whose arrays are allocated at the start, and released at the end of a run.
  CoreRun *allocate_first_ = nullptr, *release_last_ = nullptr;
  std::vector<std::unique_ptr<HostOpOnDevice>> host_ops_;  // of core steps, if values are in device memory
};

}  // namespace keel
