// wait.h: waiting on Linux: a monotonic clock, futexes, and a lock that sleeps on contention.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace keel_threads {

using Ns = int64_t;
constexpr Ns kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond;

inline Ns Now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Ns{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps while the word has this value, at most `limit` (0: no limit). May wake spuriously.
inline void Sleep(const std::atomic<uint32_t>& word, uint32_t value, Ns limit = 0) {
  const timespec t = {limit / 1'000'000'000, limit % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, limit > 0 ? &t : nullptr, nullptr, 0);
}
// The word may have been destroyed: its address is only a key.
inline void Wake(const std::atomic<uint32_t>* word, int threads) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

// Held for tens of nanoseconds; waiters sleep if the holder is not running.
class Lock {
 public:
  void lock() {
    for (int i = 0; i < 100; i++) {
      uint32_t open = 0;
      if (state_.compare_exchange_weak(open, 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
      Pause();
    }
    while (state_.exchange(2, std::memory_order_acquire) != 0) Sleep(state_, 2);
  }
  void unlock() {
    if (state_.exchange(0, std::memory_order_release) == 2) Wake(&state_, 1);
  }

 private:
  std::atomic<uint32_t> state_{0};  // 0: free; 1: held; 2: held, with possible sleepers
};

}  // namespace keel_threads
