// run_state.h: what the launches of one run share, bodies included: the environment of the calls, the stop
// flag, the observer, the error.
#pragma once

#include "absl/functional/function_ref.h"
#include "kernel/base/timeline.h"
#include "kernel/plan/lowered.h"
#include "kernel/plan/options.h"
#include "kernel/plan/stop.h"
#include "kernel/plugin/host.h"

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

}  // namespace keel
