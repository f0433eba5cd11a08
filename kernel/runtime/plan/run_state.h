// run_state.h: what the launches of one run share, bodies included: the environment of the calls, the stop
// flag, the observer, the error.
#pragma once

#include "absl/functional/function_ref.h"
#include "kernel/base/timeline.h"
#include "kernel/runtime/plan/lowered.h"
#include "kernel/runtime/plan/options.h"
#include "kernel/runtime/plan/stop.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {

// When and where a launch ran, in nanoseconds of the steady clock.
struct Moment {
  uint32_t lane = 0;
  int64_t begin = 0, end = 0;
};

// Called after each launch, including launches in bodies; false stops the run.
using Observe = bool (*)(void* arg, const Lowered& lowered, size_t step, const keel_call& call,
                         const Moment& when);

// Operations on a device with its own memory, for the frames of its runs.
class Machine {
 public:
  virtual ~Machine() = default;
  // Waits and downloads to the host; returns the error if a previous launch failed. 0 bytes: only checks.
  virtual absl::Status Fetch(const void* address, void* to, uint64_t bytes) = 0;
  // Uploads from the host, after all launches that use the destination.
  virtual absl::Status Store(void* to, const void* from, uint64_t bytes) = 0;
  virtual absl::Status Copy(void* to, const void* from, uint64_t bytes) = 0;
  // Repeats a u32; `to` and `bytes` are multiples of 4.
  virtual absl::Status Fill(void* to, uint64_t bytes, uint32_t value) = 0;
  virtual absl::Status Launched() = 0;  // after each launch
  // Sets call->params; may let other runs use the device.
  virtual absl::Status TakeParams(uint64_t bytes, keel_call* call) = 0;
  // Lets other runs use the device during `what`, which may wait for them.
  virtual absl::Status Pause(absl::FunctionRef<absl::Status()> what) = 0;
  virtual absl::Status Show(const Lowered& lowered, size_t step, const keel_call& call) = 0;
};

struct RunState {
  keel_env env{};
  Machine* machine = nullptr;  // null: host memory
  const PlanOptions* options = nullptr;
  const StopFlag* stop = nullptr;         // the flag that launches poll
  const Stopper::Limit* limit = nullptr;  // time limit of the current run; null: none
  Observe observe = nullptr;
  void* arg = nullptr;
  int64_t shown = 0;               // time at which the observer last returned
  const HostCall* host = nullptr;  // collects error messages of impls
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

}  // namespace keel
