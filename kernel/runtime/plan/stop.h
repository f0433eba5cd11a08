// stop.h: stops runs. Each context has a flag that cancels all its runs, and a thread that sets the flag of a
// run with a time limit at its deadline. Plugins read the flag through keel_env.cancelled.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>

#include "kernel/base/mutex.h"

namespace keel {

using Deadline = std::chrono::steady_clock::time_point;  // of one run
using StopFlag = std::atomic<int32_t>;                   // not 0: stop
static_assert(sizeof(StopFlag) == sizeof(int32_t) && StopFlag::is_always_lock_free);
// The type of keel_env.cancelled, without atomics, which C has only since C11.
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

  StopFlag asked{0};  // cancels all runs until it is cleared; async-signal-safe to set

  // Scope of a time limit: sets `flag` at the deadline or on cancellation. In a forked child, which has no
  // watching thread, the run must check Over() itself.
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
  sem_t changed_;  // not a condition variable: a forked child could not destroy it while the thread waits
  Limit* first_ = nullptr;
  bool started_ = false, ending_ = false;
  pid_t pid_ = 0;
  pthread_t thread_{};
};

}  // namespace keel
