// lanes_run.cc: see lanes.h: runs one parallel section. A thread that finishes a job continues with a job
// that this made ready, if any; idle threads take the other ready jobs from a shared stack.
#include <thread>

#include "kernel/runtime/plan/lanes.h"

namespace keel {

Lanes::Lanes(const Lowered& lowered, const RunState& state, std::vector<Job> jobs)
    : device_(*lowered.device), state_(state), jobs_(std::move(jobs)), waits_(jobs_.size()) {
  ready_.reserve(jobs_.size());
}

bool Lanes::Run() {
  ready_.clear();
  for (uint32_t j = static_cast<uint32_t>(jobs_.size()); j-- > 0;) {
    waits_[j].store(jobs_[j].waits, std::memory_order_relaxed);
    if (!jobs_[j].waits) ready_.push_back(j);
  }
  n_ready_ = static_cast<uint32_t>(ready_.size());
  left_ = static_cast<uint32_t>(jobs_.size());
  lanes_ = 0;
  broken_ = false;
  device_.plugin().device.run_lanes(
      state_.env.dev, state_.env.threads, [](void* lanes) { static_cast<Lanes*>(lanes)->Work(); }, this);
  return left_ == 0 && !broken_;
}

void Lanes::Work() {
  HostCall host;  // its error messages are dropped: the serial rerun reports them
  const uint32_t lane = lanes_.fetch_add(1);
  for (uint32_t j = kNone; Take(&j);) {
    if (RunJob(jobs_[j], host, lane) != KEEL_OK || state_.stop->load(std::memory_order_relaxed)) {
      broken_ = true;
      return;
    }
    j = Finish(jobs_[j]);
  }
}

// Keeps *job unless it is kNone, else waits for a ready job. False: the section has finished or failed. Only
// a lane that has nothing to do yields: next to busy processes it gets its core back after 4 ms or more.
bool Lanes::Take(uint32_t* job) {
  while (*job == kNone) {
    if (!left_.load(std::memory_order_acquire) || broken_.load(std::memory_order_relaxed)) return false;
    if (n_ready_.load(std::memory_order_relaxed)) {
      std::lock_guard lock(mutex_);
      if (!ready_.empty()) {
        *job = ready_.back();
        ready_.pop_back();
        n_ready_.fetch_sub(1, std::memory_order_relaxed);
        return true;
      }
    }
    std::this_thread::yield();
  }
  return true;
}

keel_rc Lanes::RunJob(Job& job, HostCall& host, uint32_t lane) {
  const keel_call& call = *job.call;
  if (!call.count && call.n_out == 1) return KEEL_OK;
  job.state->InheritFrom(state_, &host, nullptr);
  job.when = {lane, state_.observe ? Now() : 0, 0};
  keel_rc rc = job.run(&call);
  job.state->error = absl::OkStatus();
  if (state_.observe) job.when.end = Now();
  return rc;
}

// Returns a job that became ready, or kNone; adds the others to the ready stack.
uint32_t Lanes::Finish(const Job& job) {
  uint32_t mine = kNone;
  for (uint32_t next : job.next) {
    if (waits_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    if (mine == kNone)
      mine = next;
    else
      Ready(next);
  }
  left_.fetch_sub(1, std::memory_order_acq_rel);
  return mine;
}

void Lanes::Ready(uint32_t job) {
  std::lock_guard lock(mutex_);
  ready_.push_back(job);
  n_ready_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace keel
