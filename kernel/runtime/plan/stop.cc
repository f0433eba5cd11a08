// stop.cc: the thread for time limits. It sleeps while no run with a limit is active.
#include "kernel/runtime/plan/stop.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

namespace keel {

// The interval of checks for cancellation: a signal handler may cancel, but cannot wake the thread.
constexpr auto kTick = std::chrono::milliseconds(5);

namespace {

void WaitUntil(sem_t* changed, Stopper::Clock::time_point end) {
  const int64_t ns = std::chrono::nanoseconds(end.time_since_epoch()).count();
  const timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
  sem_clockwait(changed, CLOCK_MONOTONIC, &until);
}

}  // namespace

Stopper::~Stopper() {
  if (!started_ || pid_ != getpid()) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  sem_post(&changed_);
  pthread_join(thread_, nullptr);
}

// Starts the thread with all signals blocked, so that handlers of the program never run on it.
bool Stopper::Start() {
  if (started_) return pid_ == getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  started_ = pthread_create(&thread_, nullptr, Watch, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pid_ = getpid();
  return started_;
}

Stopper::Clock::time_point Stopper::Look() {
  Clock::time_point now = Clock::now(), next = now + kTick;
  for (Limit* limit = first_; limit; limit = limit->next_) {
    if (asked.load(std::memory_order_relaxed) || now >= limit->end_)
      limit->flag_.store(1, std::memory_order_relaxed);
    else
      next = std::min(next, limit->end_);
  }
  return next;
}

void* Stopper::Watch(void* arg) {
  auto& self = *static_cast<Stopper*>(arg);
  std::unique_lock lock(self.mutex_);
  while (!self.ending_) {
    const bool idle = !self.first_;
    const Clock::time_point next = idle ? Clock::time_point() : self.Look();
    lock.unlock();
    if (idle)
      sem_wait(&self.changed_);
    else
      WaitUntil(&self.changed_, next);
    lock.lock();
  }
  return nullptr;
}

Stopper::Limit::Limit(Stopper& stopper, Clock::time_point end, StopFlag& flag)
    : stopper_(stopper), flag_(flag), end_(end) {
  flag_.store(stopper.asked.load(std::memory_order_relaxed), std::memory_order_relaxed);
  std::lock_guard lock(stopper_.mutex_);
  watched_ = stopper_.Start();
  if (!watched_) return;
  next_ = stopper_.first_;
  link_ = &stopper_.first_;
  if (next_) next_->link_ = &next_;
  stopper_.first_ = this;
  sem_post(&stopper_.changed_);
}

Stopper::Limit::~Limit() {
  if (!watched_) return;
  std::lock_guard lock(stopper_.mutex_);
  // In a forked child the list has limits of threads that do not exist there.
  if (stopper_.pid_ != getpid()) return;
  *link_ = next_;
  if (next_) next_->link_ = link_;
}

}  // namespace keel
