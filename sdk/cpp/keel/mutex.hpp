// mutex.hpp: a lock that a fork of the process leaves in order. The child has the forking thread alone, so a
// lock that another thread held would stay taken for ever; these are free in the child, whoever held them.
//
// How to read it: all that live are in one list (of each library that includes this). fork() first waits
// until it holds all of them, as nothing is half changed then, and gives them back in both processes. It
// waits for some 100 ms at most, and never for what the forking thread holds itself, which it goes on holding
// in both. What was busy for longer the child finds free, and what it guards as it was at that moment: so who
// holds a lock for long computes first, and changes what is guarded at the end, in little.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace keel {

/// For std::lock_guard and its like; costs what std::mutex does.
class Mutex {
 public:
  // kLong: nothing is guarded, but work, some of it the program's own, is done by one thread at a time.
  // fork() does not wait for it, and the child may begin it anew.
  enum Kind : unsigned char { kShort, kLong };
  explicit Mutex(Kind kind = kShort) : kind_(kind) {
    std::lock_guard lock(list());
    link();
  }
  ~Mutex() {
    std::unique_lock lock(list());
    while (forks_) {  // for a moment
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
    owner_.store(kNobody, std::memory_order_relaxed);
    mutex_.unlock();
  }
  bool mine() const { return owner_.load(std::memory_order_relaxed) == pthread_self(); }  // this thread's

 private:
  static constexpr pthread_t kNobody{};
#if defined(__SANITIZE_THREAD__)  // which ends a program of which a thread holds more than 64
  static constexpr int kMost = 50;
#else
  static constexpr int kMost = 1 << 30;
#endif

  static std::mutex& list() {  // guards the list; held from the first of the handlers on
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

  // Null: all are taken that fork waits for. Else the first that is busy; with `all` the others are taken.
  static Mutex* take(bool all) {
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
  static void give(Mutex* end = nullptr) {
    for (Mutex* m = first_; m != end; m = m->after_)
      if (std::exchange(m->forks_, false)) m->mutex_.unlock();
  }

  // Has nothing in hand while it waits, so the order in which others take locks does not matter; at last it
  // keeps what it has, and waits for the rest a little: of what is taken for a moment only, again and again,
  // it gets all. It looks often, for a lock that many threads want is free for an instant at a time.
  static void prepare() {
    using Clock = std::chrono::steady_clock;
    constexpr int kLooks = 1000;
    const Clock::time_point keep = Clock::now() + std::chrono::milliseconds(100),
                            end = keep + std::chrono::milliseconds(20);
    for (int i = 1;; i++) {
      list().lock();
      const Clock::time_point now = Clock::now();
      Mutex* busy = take(now >= keep);
      if (!busy || now >= end) return;
      if (now < keep) {
        give(busy);
        busy->unlink();
        busy->link();  // the next look begins with it
      }
      list().unlock();
      if (i % kLooks == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  static void in_parent() {
    give();
    list().unlock();
  }
  static void in_child() {
    for (Mutex* m = first_; m; m = m->after_) {
      if (m->forks_ || m->mine()) continue;
      new (&m->mutex_) std::mutex;  // its owner is not there
      m->owner_.store(kNobody, std::memory_order_relaxed);
    }
    in_parent();
  }

  std::mutex mutex_;
  std::atomic<pthread_t> owner_{kNobody};
  const Kind kind_;
  bool forks_ = false;  // taken by fork()
  Mutex *before_ = nullptr, *after_ = nullptr;
};

}  // namespace keel
