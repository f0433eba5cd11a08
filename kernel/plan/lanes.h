// lanes.h: parallel launches of one run, each on one thread of the device. It pays for launches that gain
// little from more threads: loops, small matrix products.
//
// How to read it: PlanLanes cuts the steps of a binding into sections. Memory is planned per section
// (memory.cc): a parallel section reuses no memory, so only data dependencies order its steps. Lanes runs a
// parallel section of one frame, each step as soon as its operands are computed. After a failure the section
// is rerun serially; its operands are intact, and the serial rerun reports the error.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "kernel/plan/frame.h"

namespace keel {

// The sections of all steps; empty: all steps run in order. `binding`: shapes and launches are set.
absl::StatusOr<std::vector<Section>> PlanLanes(const Lowered& lowered, const Binding& binding,
                                               const PlanOptions& options);

class Lanes {
 public:
  struct Job {
    uint32_t step;
    const keel_call* call;
    keel_rc (*run)(const keel_call*);
    RunState* own;
    std::vector<uint32_t> next;  // jobs that read its results, once for each operand
    uint32_t waits = 0;          // number of operands computed in this section
    Moment when;
  };
  Lanes(const Lowered& lowered, const RunState& state, std::vector<Job> jobs);
  // False: a job failed, or the run is to stop. Values from before the section are unchanged.
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
  std::vector<uint32_t> ready_;           // a stack
  std::atomic<uint32_t> n_ready_, left_;  // left: jobs that are not done
  std::atomic<uint32_t> lanes_;           // started lanes
  std::atomic<bool> broken_;
};

}  // namespace keel
