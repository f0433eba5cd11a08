// backoff.h: when regions use fewer workers. Under load a worker can lose its core within a part, and its
// region then waits for a scheduler time slice, 3 to 4 ms. A thread that detects such a delay reports it, and
// for about ten times as long regions wake half as many workers, then none. If it happens again soon, the
// period doubles. So load costs at most a tenth, and a quiet machine nothing.
#pragma once

#include <algorithm>
#include <atomic>

#include "plugins/cpu/threads/wait.h"

namespace keel_threads {

class Backoff {
 public:
  static constexpr Ns kLongest = 300 * kMillisecond;
  static constexpr int kForgiven = 2;

  // How many of the wanted workers a region may wake.
  int Helpers(int wanted, Ns now) const {
    return now < until_.load(std::memory_order_relaxed)
               ? std::min(wanted, most_.load(std::memory_order_relaxed))
               : wanted;
  }
  // Whether a thread was delayed recently; waits then sleep instead of spinning.
  bool Loaded(Ns now) const {
    return now < until_.load(std::memory_order_relaxed) + span_.load(std::memory_order_relaxed);
  }

  // Reports that a runnable thread did not run for `span`. `workers` is the pool's size. Needs the pool's
  // lock.
  void Delayed(Ns span, int workers, Ns now) {
    const Ns until = until_.load(std::memory_order_relaxed), last = span_.load(std::memory_order_relaxed);
    const bool again = until != 0 && now < until + last;
    const int before = again ? most_.load(std::memory_order_relaxed) : workers;
    const Ns next = std::min(kLongest, std::max(10 * span, again ? 2 * last : Ns{0}));
    span_.store(next, std::memory_order_relaxed);
    most_.store(before / 2, std::memory_order_relaxed);
    until_.store(std::max(until, now + next), std::memory_order_relaxed);
  }
  // Reports that a worker started `span` after its wake-up. That delays nothing, as the caller ran the part,
  // but it may mean that no core is free. A quiet machine also has such starts: a waking thread may be put on
  // its caller's core until the next tick (seen with two cores without a common cache). So only repeated late
  // starts count.
  void Late(Ns span, int workers, Ns now) {
    late_ = now < late_at_ + kLongest ? late_ + 1 : 1;
    late_at_ = now;
    if (late_ > kForgiven) Delayed(span, workers, now);
  }

 private:
  std::atomic<Ns> until_{0};  // end of the reduced period
  std::atomic<int> most_{0};  // workers allowed until then
  std::atomic<Ns> span_{0};
  int late_ = 0;  // late starts in close succession
  Ns late_at_ = -kLongest;
};

}  // namespace keel_threads
