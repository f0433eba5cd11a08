// stop.h: cancellation and time limits of runs: one flag per context, which keel_context_cancel sets, and a
// thread that sets the flag of a run at its deadline. Plugins read the flag as keel_env.cancelled.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>

#include "kernel/base/mutex.h"

namespace keel {

// Of one run. As a parameter, null means the time limit of the run's options.
using Deadline = std::chrono::steady_clock::time_point;
using StopFlag = std::atomic<int32_t>;  // 0: continue
static_assert(sizeof(StopFlag) == sizeof(int32_t) && StopFlag::is_always_lock_free);
// As plugins read it; C has no atomics before C11.
inline const volatile int32_t* Exported(const StopFlag& flag) {
  return reinterpret_cast<const volatile int32_t*>(&flag);
}

class Stopper {
 public:
  using Clock = std::chrono::steady_clock;
  Stopper() { sem_init(&changed_, 0, 0); }
  ~Stopper();
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;

  StopFlag asked{0};  // async-signal-safe to set; stays set until it is cleared

  // During its lifetime the thread sets `flag` at the deadline or after keel_context_cancel. Without a thread
  // (in a forked child) Over() checks the deadline.
  class Limit {
   public:
    Limit(Stopper& stopper, Clock::time_point end, StopFlag& flag);
    ~Limit();
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;
    bool Over() const { return !watched_ && Clock::now() >= end_; }

   private:
    friend Stopper;
    Stopper& stopper_;
    StopFlag& flag_;
    Clock::time_point end_;
    bool watched_ = false;
    Limit *next_ = nullptr, **link_ = nullptr;  // the stopper's list
  };

 private:
  static void* Watch(void* stopper);
  Clock::time_point Look();  // sets flags; returns the time of the next check
  bool Start();

  Mutex mutex_;
  sem_t changed_;  // not a condition variable, which could not be destroyed in a forked child
  Limit* first_ = nullptr;
  bool started_ = false, ending_ = false;
  pid_t pid_ = 0;
  pthread_t thread_{};
};

}  // namespace keel
