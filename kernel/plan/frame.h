// frame.h: the launches of one binding, of a plan or of a body, ready to run on the memory that the caller
// provides. Views and calls are built once; a run only sets pointers and calls.
//
// How to read it: RunState is shared by the frames of one runner. The launch of a control step is RunControl,
// its state a Control (control.h), which owns the frames of its bodies.
#pragma once

#include <memory>
#include <vector>

#include "kernel/base/timeline.h"
#include "kernel/plan/binding.h"

namespace keel {

// When and where a launch ran, in nanoseconds of the steady clock.
struct Moment {
  uint32_t lane = 0;
  int64_t begin = 0, end = 0;
};

// Called after each launch, including launches of bodies; false stops the run.
using Observe = bool (*)(void* arg, const Lowered& lowered, size_t step, const keel_call& call,
                         const Moment& when);

class Frame;

// The operations of frames on a device with memory of its own.
class Machine {
 public:
  virtual ~Machine() = default;
  // Downloads synchronously; an error if an earlier launch failed. 0 bytes: only checks earlier launches.
  virtual absl::Status Fetch(const void* address, void* to, uint64_t bytes) = 0;
  // Uploads after earlier launches.
  virtual absl::Status Store(void* to, const void* from, uint64_t bytes) = 0;
  virtual absl::Status Copy(void* to, const void* from, uint64_t bytes) = 0;
  virtual absl::Status Zero(void* to, uint64_t bytes) = 0;
  virtual absl::Status Launched() = 0;  // after each launch of a body
  virtual absl::Status Show(const Frame& frame, size_t step) = 0;
};

struct RunState {
  keel_env env{};
  const PlanOptions* options = nullptr;
  const StopFlag* stop = nullptr;         // the flag that launches read
  const Stopper::Limit* limit = nullptr;  // of the current run
  Observe observe = nullptr;
  void* arg = nullptr;
  int64_t shown = 0;               // when the observer last returned
  const HostCall* host = nullptr;  // collects the errors of impls
  Machine* machine = nullptr;      // null: host memory
  absl::Status error;              // of the frame whose Run did not return KEEL_OK

  // Calls the observer, which may stop the run. `when` null: the launch began when the observer last
  // returned.
  absl::Status Show(const Lowered& lowered, size_t step, const keel_call& call, const Moment* when = nullptr);
  // Copies the state of a run into this state, which belongs to one step.
  void Take(const RunState& run, const HostCall* call, Observe observer) {
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
  // The memory has the size that the binding specifies and must outlive the frame.
  Frame(const Lowered& lowered, const Binding& binding, RunState& state, char* arena, char* scratch);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Where feeds are and results go; on a device: addresses.
  void SetFeed(size_t i, void* data) {
    for (const View& view : feed_views_[i]) view.tensor->data = static_cast<char*>(data) + view.offset;
  }
  void SetOutput(size_t i, void* data) {
    outputs_[i].data = data;
    for (const View& view : outputs_[i].views) view.tensor->data = static_cast<char*>(data) + view.offset;
  }
  keel_rc Run();  // unless KEEL_OK: state.error is set
  // Whether result i is feed i unchanged, so that a loop need not copy it.
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
    std::vector<View> views;              // written in place
    const keel_tensor* source = nullptr;  // copied after the run if there are no views
    uint64_t bytes = 0;
  };
  void BuildViews(char* arena);
  void BuildOutputs();
  void BuildCalls(char* scratch);
  void BuildCore();
  void BuildCoreViews();
  void LinkCore();
  void BuildOwn();
  void BuildSections();
  keel_rc RunStep(size_t step, bool watched);
  keel_rc RunSteps();
  keel_rc RunSections();
  keel_rc ShowLanes(const Lanes& lanes);
  keel_rc EndEarly(keel_rc rc, size_t step);
  keel_rc Fail(const absl::Status& status);
  bool Watch(size_t step);  // time limit, observer and device after a launch; false: stop
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
  std::vector<std::unique_ptr<RunState>> own_;  // of steps that run in parallel
  std::vector<RunState*> own_of_;               // by step, or empty; null: the frame's state
  std::vector<std::unique_ptr<Lanes>> lanes_;   // by section; null: in order
  std::vector<CoreRun> core_;                   // of core steps
  std::vector<CoreRun*> core_of_;               // by step, or empty
  std::vector<keel_tensor*> core_views_;
  // Lists: core steps whose arrays are allocated at the start, and released at the end, of a run.
  CoreRun *first_ = nullptr, *held_ = nullptr;
  std::vector<std::unique_ptr<HostOpOnDevice>> host_ops_;  // of core steps whose values are on a device
};

}  // namespace keel
