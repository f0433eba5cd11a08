// stop.cc: the thread behind time limits. It sleeps while no limited run is under way.
#include "kernel/plan/stop.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

namespace keel {

// A signal handler cannot wake a thread, so a run with a limit learns of keel_cancel this often.
constexpr auto kTick = std::chrono::milliseconds(5);

Stopper::~Stopper() {
  if (!started_ || pid_ != getpid()) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  pthread_join(thread_, nullptr);
}

// With all signals blocked: they are the program's affair.
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
    if (self.first_)
      self.changed_.wait_until(lock, self.Look());
    else
      self.changed_.wait(lock);
  }
  return nullptr;
}

Stopper::Limit::Limit(Stopper& stopper, Clock::time_point end, StopFlag& flag)
    : stopper_(stopper), flag_(flag), end_(end) {
  flag_.store(stopper.asked.load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (stopper.started_ && stopper.pid_ != getpid()) return;  // and its mutex may be held for ever
  std::lock_guard lock(stopper_.mutex_);
  watched_ = stopper_.Start();
  if (!watched_) return;
  next_ = stopper_.first_;
  link_ = &stopper_.first_;
  if (next_) next_->link_ = &next_;
  stopper_.first_ = this;
  stopper_.changed_.notify_one();
}

Stopper::Limit::~Limit() {
  if (!watched_) return;
  std::lock_guard lock(stopper_.mutex_);
  *link_ = next_;
  if (next_) next_->link_ = link_;
}

}  // namespace keel
