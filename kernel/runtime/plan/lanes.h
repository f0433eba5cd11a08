// lanes.h: parallel launches within one run, each on one thread of the device. This is faster for steps that
// gain little from several threads: loops, small products.
//
// How to read it: PlanLanes divides the steps of a binding into sections. Memory is planned along them
// (memory.cc): a parallel section reuses no memory, so that only data dependencies order its steps. Lanes
// runs such a section for one frame and starts each step as soon as its operands are ready. If a step fails,
// the section's operands are intact and the section is rerun in order; the serial rerun reports the error.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/run_state.h"

namespace keel {

// The sections of all steps; empty: run all steps in order. Requires the shapes and launches of `binding`.
absl::StatusOr<std::vector<Section>> PlanLanes(const Lowered& lowered, const Binding& binding,
                                               const PlanOptions& options);

class Lanes {
 public:
  struct Job {
    uint32_t step;
    const keel_call* call;
    keel_rc (*run)(const keel_call*);
    RunState* state;
    std::vector<uint32_t> next;  // jobs that read its results, once per operand
    uint32_t waits = 0;          // number of operands computed in this section
    Moment when;
  };
  Lanes(const Lowered& lowered, const RunState& state, std::vector<Job> jobs);
  // False: a job failed or the run was stopped. All values computed before the section are intact.
  bool Run();
  const std::vector<Job>& jobs() const { return jobs_; }

 private:
  static constexpr uint32_t kNone = ~0u;
  void Work();
  bool Take(uint32_t* job);
  keel_rc RunJob(Job& job, HostCall& host, uint32_t lane);
  uint32_t Finish(const Job& job);
  void Ready(uint32_t job);

  const Device& device_;
  const RunState& state_;
  std::vector<Job> jobs_;
  std::vector<std::atomic<uint32_t>> waits_;  // by job
  std::mutex mutex_;
  std::vector<uint32_t> ready_;           // a stack of jobs whose operands are ready
  std::atomic<uint32_t> n_ready_, left_;  // left_: unfinished jobs
  std::atomic<uint32_t> lanes_;           // number of threads that have started
  std::atomic<bool> broken_;
};

}  // namespace keel
