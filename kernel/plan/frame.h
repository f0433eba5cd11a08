// frame.h: the launches of one binding, ready to run on memory that somebody gives: of a whole plan, or of a
// body inside one. Views and calls are built once; a run only stores pointers and calls.
//
// How to read it: RunState is what the frames of one runner share. A control step's launch is RunControl,
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

// Called after each launch, also of those in bodies; false stops the run.
using Observe = bool (*)(void* arg, const Lowered& lowered, size_t step, const keel_call& call,
                         const Moment& when);

class Frame;

// What frames need of a device with memory of its own.
class Machine {
 public:
  virtual ~Machine() = default;
  // For the host, now; an error if a launch before failed. No bytes: only that.
  virtual absl::Status Fetch(const void* address, void* to, uint64_t bytes) = 0;
  virtual absl::Status Store(void* to, const void* from, uint64_t bytes) = 0;  // from the host, once free
  virtual absl::Status Copy(void* to, const void* from, uint64_t bytes) = 0;
  virtual absl::Status Zero(void* to, uint64_t bytes) = 0;
  virtual absl::Status Launched() = 0;  // after each launch of a body
  virtual absl::Status Show(const Frame& frame, size_t step) = 0;
};

struct RunState {
  keel_env env{};
  const PlanOptions* options = nullptr;
  const StopFlag* stop = nullptr;         // what launches look at
  const Stopper::Limit* limit = nullptr;  // of the run under way
  Observe observe = nullptr;
  void* arg = nullptr;
  int64_t shown = 0;               // when the observer came back last
  const HostCall* host = nullptr;  // keeps what impls say
  Machine* machine = nullptr;      // null: host memory
  absl::Status error;              // of the frame whose Run did not give KEEL_OK

  // To the observer, who may stop the run; null: it began when he came back.
  absl::Status Show(const Lowered& lowered, size_t step, const keel_call& call, const Moment* when = nullptr);
  // What a step that has a state of its own needs of the run.
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
class CoreThere;
class Lanes;

class Frame {
 public:
  // The memory, as large as the binding says, must live as long as this.
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
  keel_rc Run();  // anything but KEEL_OK: state.error says why
  // Result i is feed i, untouched: a loop need not copy it.
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
    std::vector<View> views;              // that are written in place
    const keel_tensor* source = nullptr;  // to copy from, if none
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
  bool Watch(size_t step);  // what not every run needs; false: stop
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
  std::vector<std::unique_ptr<RunState>> own_;  // of steps that run side by side
  std::vector<RunState*> own_of_;               // by step, where there are any; null: the frame's
  std::vector<std::unique_ptr<Lanes>> lanes_;   // by section; null: one by one
  std::vector<CoreRun> core_;                   // of core steps
  std::vector<CoreRun*> core_of_;               // by step, where there are any
  std::vector<keel_tensor*> core_views_;
  CoreRun *first_ = nullptr, *held_ = nullptr;     // lists: whose arrays a run begins with, and ends with
  std::vector<std::unique_ptr<CoreThere>> there_;  // of core steps, where values are on a device
};

}  // namespace keel
