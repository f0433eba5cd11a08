// mutex.h: the kernel's locks. Every lock that a forked child may need is based on keel::Mutex
// (abi/mutex.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "abi/mutex.hpp"

namespace keel {

class RecursiveMutex {
 public:
  void lock() {
    if (!mutex_.mine()) mutex_.lock(), depth_ = 0;  // also in a forked child whose parent's thread held it
    depth_++;
  }
  void unlock() {
    if (!--depth_) mutex_.unlock();
  }

 private:
  Mutex mutex_;
  uint32_t depth_ = 0;
};

// std::call_once for forking programs: if fork() interrupts `work`, the child runs it again. `work` must
// therefore publish its results last.
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
