// mutex.hpp: a mutex that fork() leaves usable. A forked child has only the forking thread, so a plain lock
// held by another thread would stay locked forever; these are free in the child.
//
// How to read it: all mutexes are in one list (per library that includes this header). The atfork handlers
// lock all of them before fork(), so that no guarded data is half changed, and unlock them in both processes.
// The wait is limited to about 100 ms, and excludes mutexes held by the forking thread, which stay held in
// both. In the child a mutex that was still busy is free, with its data as it was at that moment: code that
// holds a lock for long must compute first, and change the guarded data briefly at the end.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace keel {

/// For std::lock_guard and the like; as fast as std::mutex.
class Mutex {
 public:
  // kLong: serializes long work (including user code) rather than guarding data. fork() does not wait for it,
  // and the child may start the work again.
  enum Kind : unsigned char { kShort, kLong };
  explicit Mutex(Kind kind = kShort) : kind_(kind) {
    std::lock_guard lock(list());
    link();
  }
  ~Mutex() {
    std::unique_lock lock(list());
    while (forks_) {  // until the atfork handler has released this mutex
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    unlink();
  }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    mutex_.lock();
    owner_.store(pthread_self(), std::memory_order_relaxed);
  }
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    owner_.store(pthread_self(), std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    owner_.store(kUnowned, std::memory_order_relaxed);
    mutex_.unlock();
  }
  bool mine() const {
    return owner_.load(std::memory_order_relaxed) == pthread_self();
  }  // held by this thread

 private:
  static constexpr pthread_t kUnowned{};
#if defined(__SANITIZE_THREAD__)  // TSan aborts if a thread holds more than 64 mutexes
  static constexpr int kMost = 50;
#else
  static constexpr int kMost = 1 << 30;
#endif

  static std::mutex& list() {  // guards the list; held from prepare() until after fork()
    static constinit std::mutex mutex;
    [[maybe_unused]] static const int watch = pthread_atfork(prepare, in_parent, in_child);
    return mutex;
  }
  static inline constinit Mutex* first_ = nullptr;

  void link() {
    before_ = nullptr;
    after_ = first_;
    if (first_) first_->before_ = this;
    first_ = this;
  }
  void unlink() {
    (before_ ? before_->after_ : first_) = after_;
    if (after_) after_->before_ = before_;
  }

  // Returns null if all relevant mutexes are locked, else the first busy one; with `all` the others are
  // locked.
  static Mutex* try_lock_all(bool all) {
    Mutex* busy = nullptr;
    int left = kMost;
    for (Mutex* m = first_; m && left && (all || !busy); m = m->after_) {
      if (m->kind_ == kLong || m->mine()) continue;
      left--;
      if (!m->forks_) m->forks_ = m->mutex_.try_lock();
      if (!m->forks_ && !busy) busy = m;
    }
    return busy;
  }
  static void unlock_all(Mutex* end = nullptr) {
    for (Mutex* m = first_; m != end; m = m->after_)
      if (std::exchange(m->forks_, false)) m->mutex_.unlock();
  }

  // Try-lock all; on contention release everything and retry, so that the lock order of other threads does
  // not matter. After 100 ms keeps the acquired locks and retries the rest for 20 ms more: briefly held locks
  // are all acquired. Retries often, since a contended lock is free only for instants.
  static void prepare() {
    using Clock = std::chrono::steady_clock;
    constexpr int kAttempts = 1000;
    const Clock::time_point keep = Clock::now() + std::chrono::milliseconds(100),
                            end = keep + std::chrono::milliseconds(20);
    for (int i = 1;; i++) {
      list().lock();
      const Clock::time_point now = Clock::now();
      Mutex* busy = try_lock_all(now >= keep);
      if (!busy || now >= end) return;
      if (now < keep) {
        unlock_all(busy);
        busy->unlink();
        busy->link();  // the next attempt begins with it
      }
      list().unlock();
      if (i % kAttempts == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  static void in_parent() {
    unlock_all();
    list().unlock();
  }
  static void in_child() {
    for (Mutex* m = first_; m; m = m->after_) {
      if (m->forks_ || m->mine()) continue;
      new (&m->mutex_) std::mutex;  // its owner does not exist in the child
      m->owner_.store(kUnowned, std::memory_order_relaxed);
    }
    in_parent();
  }

  std::mutex mutex_;
  std::atomic<pthread_t> owner_{kUnowned};
  const Kind kind_;
  bool forks_ = false;  // taken by fork()
  Mutex *before_ = nullptr, *after_ = nullptr;
};

}  // namespace keel
