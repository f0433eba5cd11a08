// mutex.h: the kernel's locks. All that a forked child may need are made of keel::Mutex, which says why.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "sdk/cpp/keel/mutex.hpp"

namespace keel {

class RecursiveMutex {
 public:
  void lock() {
    if (!mutex_.mine()) mutex_.lock(), depth_ = 0;  // also in a child of which another thread had it
    depth_++;
  }
  void unlock() {
    if (!--depth_) mutex_.unlock();
  }

 private:
  Mutex mutex_;
  uint32_t depth_ = 0;
};

// As std::call_once with its flag: done by one thread, while others wait. Where a fork did not wait for its
// end, it is done anew in the child, so it sets what it sets at its end.
class Once {
 public:
  template <typename Work>
  void Do(const Work& work) {
    if (done_.load(std::memory_order_acquire)) [[likely]]
      return;
    std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  Mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace keel
