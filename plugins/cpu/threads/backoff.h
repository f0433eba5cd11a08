// backoff.h: when to do without workers. Beside other load a worker can lose its core in the middle of a
// part, and its region waits for a slice of the scheduler, 3 to 4 ms. So whoever sees that a thread of ours
// did not run when it could have reports it, and for some ten times as long regions wake fewer workers: half
// as many, then none. Where it happens again soon after, the time doubles. So load costs a tenth at most, and
// a quiet machine nothing.
#pragma once

#include <algorithm>
#include <atomic>

#include "plugins/cpu/threads/wait.h"

namespace keel_threads {

class Backoff {
 public:
  static constexpr Ns kLongest = 300 * kMillisecond;
  static constexpr int kForgiven = 2;

  // How many of so many workers a region may wake.
  int Helpers(int wanted, Ns now) const {
    return now < until_.load(std::memory_order_relaxed)
               ? std::min(wanted, most_.load(std::memory_order_relaxed))
               : wanted;
  }
  // Whether a thread was delayed not long ago: who waits then does not spin.
  bool Loaded(Ns now) const {
    return now < until_.load(std::memory_order_relaxed) + span_.load(std::memory_order_relaxed);
  }

  // A thread was not running for so long though it could have. `workers`: of the pool. Under the pool's lock.
  void Delayed(Ns span, int workers, Ns now) {
    const Ns until = until_.load(std::memory_order_relaxed), last = span_.load(std::memory_order_relaxed);
    const bool again = until != 0 && now < until + last;
    const int before = again ? most_.load(std::memory_order_relaxed) : workers;
    const Ns next = std::min(kLongest, std::max(10 * span, again ? 2 * last : Ns{0}));
    span_.store(next, std::memory_order_relaxed);
    most_.store(before / 2, std::memory_order_relaxed);
    until_.store(std::max(until, now + next), std::memory_order_relaxed);
  }
  // A worker began so long after it was called, which cost nobody anything: the caller ran its part. It may
  // mean that no core is free. But on a quiet machine, too, a thread that wakes may be put on its
  // caller's core until the next tick (seen with two cores that have no cache in common), so only what goes
  // on counts.
  void Late(Ns span, int workers, Ns now) {
    late_ = now < late_at_ + kLongest ? late_ + 1 : 1;
    late_at_ = now;
    if (late_ > kForgiven) Delayed(span, workers, now);
  }

 private:
  std::atomic<Ns> until_{0};  // fewer helpers up to here
  std::atomic<int> most_{0};  // so many
  std::atomic<Ns> span_{0};
  int late_ = 0;  // starts, one soon after the other
  Ns late_at_ = -kLongest;
};

}  // namespace keel_threads
