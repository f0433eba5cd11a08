// lanes.h: launches of one run side by side, each on one thread of the device. It pays for what gains little
// from more threads itself: loops, small products.
//
// How to read it: PlanLanes cuts the steps of a binding into sections. Memory is planned along them
// (memory.cc): in a section that runs side by side nothing is used again, so that only data orders its steps.
// Lanes runs such a section for one frame, as soon as operands are there. Of a section that fails nothing is
// lost: it is run again in order, which says why.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "kernel/plan/frame.h"

namespace keel {

// The sections of all steps; none: in order, one by one. `binding`: shapes and launches are set.
absl::StatusOr<std::vector<Section>> PlanLanes(const Lowered& lowered, const Binding& binding,
                                               const PlanOptions& options);

class Lanes {
 public:
  struct Job {
    uint32_t step;
    const keel_call* call;
    keel_rc (*run)(const keel_call*);
    RunState* own;
    std::vector<uint32_t> next;  // jobs that read what it computes, once for each operand
    uint32_t waits = 0;          // for so many operands
    Moment when;
  };
  Lanes(const Lowered& lowered, const RunState& state, std::vector<Job> jobs);
  // False: one failed, or the run is to stop. Everything from before the section is as it was.
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
  std::vector<uint32_t> ready_;           // the next to run last
  std::atomic<uint32_t> n_ready_, left_;  // left: jobs that are not done
  std::atomic<uint32_t> lanes_;           // that began
  std::atomic<bool> broken_;
};

}  // namespace keel
