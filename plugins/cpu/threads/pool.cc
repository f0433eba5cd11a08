// pool.cc: see pool.h.
#include "plugins/cpu/threads/pool.h"

#include <signal.h>

#include <mutex>
#include <new>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

#include "plugins/cpu/threads/threads.h"

namespace keel_threads {
namespace {

// How long a worker spins for the next region, and a caller for its parts, before it sleeps: on a quiet
// machine and under load.
constexpr Ns kSpin = kMillisecond, kSpinLoaded = 20 * kMicrosecond, kWait = 50 * kMicrosecond;
// The watcher's period: longer than a scheduler time slice, as a caller that lost its core is not stuck.
constexpr Ns kLook = 8 * kMillisecond;
constexpr int kIdleLooks = 4;  // checks without a region, after which the watcher sleeps like the others
constexpr Ns kLate = 500 * kMicrosecond;  // from a wake-up to a worker's first step
constexpr Ns kGap = 300 * kMicrosecond;   // between two clock readings of a spin loop: the core was lost

#if defined(__x86_64__)
unsigned Options() { return _mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_MASK); }
unsigned Flags() { return _mm_getcsr() & _MM_EXCEPT_MASK; }
void SetOptions(unsigned options) { _mm_setcsr(options); }  // also clears the flags
void Raise(unsigned flags) {
  if ((Flags() & flags) != flags) _mm_setcsr(_mm_getcsr() | flags);
}
#else
unsigned Options() { return static_cast<unsigned>(std::fegetround()); }
unsigned Flags() { return static_cast<unsigned>(std::fetestexcept(FE_ALL_EXCEPT)); }
void SetOptions(unsigned options) {
  std::fesetround(static_cast<int>(options));
  std::feclearexcept(FE_ALL_EXCEPT);
}
void Raise(unsigned flags) { std::feraiseexcept(static_cast<int>(flags)); }
#endif

// Spins until f returns true or the limit is reached; returns whether f did. Calls at_clock with each clock
// reading.
template <class F, class G>
bool SpinFor(Ns limit, F&& f, G&& at_clock) {
  for (Ns start = Now(), now = start; now - start < limit; now = Now()) {
    at_clock(now);
    for (int i = 0; i < 32; i++) {
      if (f()) return true;
      Pause();
    }
  }
  return f();
}

alignas(64) constinit Pool pool;
// Workers do not survive fork(). A child starts its own when needed.
const int fork_watch = pthread_atfork(nullptr, nullptr, [] { new (&pool) Pool; });

}  // namespace

Pool& Pool::Get() { return pool; }

void Regions::Add(Region* r) {
  r->before = last_;
  r->after = nullptr;
  (last_ != nullptr ? last_->after : first_) = r;
  last_ = r;
}

void Regions::Remove(Region* r) {
  (r->before != nullptr ? r->before->after : first_) = r->after;
  (r->after != nullptr ? r->after->before : last_) = r->before;
}

int Pool::Reserve(int n) {
  std::lock_guard lock(lock_);
  while (workers_ < n - 1) {
    const int before = workers_;
    Start();
    if (workers_ == before) break;
  }
  return 1 + workers_;
}

void Pool::Start() {
  sigset_t all, before;
  sigfillset(&all);  // signals are for the program's own threads
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, Work, this) == 0) {
    pthread_setname_np(thread, "keel-cpu");
    pthread_detach(thread);
    workers_++;
    looking_++;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* Pool::Work(void* pool) {
  static_cast<Pool*>(pool)->RunWorker();
  return nullptr;
}

// ---- caller

void Pool::Open(Region* r, int helpers) {
  r->next.store(1, std::memory_order_relaxed);
  r->flags.store(0, std::memory_order_relaxed);
  r->seen = 0;
  r->options = Options();
  r->opened = Now();
  r->helpers = thread_state.gang ? r->n - 1 : backoff_.Helpers(std::min(helpers, r->n - 1), r->opened);
  if (workers_.load(std::memory_order_relaxed) < r->n - 1) Reserve(r->n);
  std::unique_lock lock(lock_);
  opened_++;
  int wake = 0;
  if (r->helpers > 0) {
    Queue(r);
    wake = Call(r->helpers - looking_.load(std::memory_order_relaxed) - called_);
  } else {
    r->queued = false;
    lone_.Add(r);
  }
  if (r->helpers < r->n - 1 && !watched_ && sleeping_ > 0) {
    signal_++;
    wake++;  // without a call: this worker becomes the watcher
  }
  lock.unlock();
  if (wake > 0) Wake(&signal_, wake);
}

void Pool::Close(Region* r) {
  thread_state.number = 0;
  for (int number; (number = ClaimOwn(r)) > 0;) {
    thread_state.number = number;
    r->part(r->arg, number, r->n);
  }
  thread_state.number = 0;
  if (r->running.load(std::memory_order_acquire) != 0) Await(r);
  if (const unsigned flags = r->flags.load(std::memory_order_relaxed)) Raise(flags);
}

// Spins, then sleeps. A wait much longer than the caller's own work means that a worker lost its core.
void Pool::Await(Region* r) {
  const Ns start = Now(), own = start - r->opened;
  const Ns patience = backoff_.Loaded(start) ? kSpinLoaded : std::min(kSpin, kWait + own / 4);
  const auto ended = [&] { return r->running.load(std::memory_order_acquire) == 0; };
  if (!SpinFor(patience, ended, [](Ns) {}))
    for (uint32_t v = r->running.fetch_or(kAsleep, std::memory_order_acq_rel) | kAsleep; v != kAsleep;
         v = r->running.load(std::memory_order_acquire))
      Sleep(r->running, v);
  r->running.store(0, std::memory_order_relaxed);
  const Ns now = Now();
  if (now - start > 2 * own + kWait) Delayed(now - start, now);
}

void Pool::Delayed(Ns span, Ns now) {
  std::lock_guard lock(lock_);
  backoff_.Delayed(span, workers_, now);
}

// ---- claims, under the lock

int Pool::TakePart(Region* r) {
  const int number = r->next.load(std::memory_order_relaxed);
  if (number + 1 == r->n) {
    (r->queued ? queue_ : lone_).Remove(r);
    first_.store(queue_.First(), std::memory_order_relaxed);
  }
  return number;
}

int Pool::ClaimOwn(Region* r) {
  if (r->next.load(std::memory_order_acquire) == r->n) return 0;
  std::lock_guard lock(lock_);
  if (r->next.load(std::memory_order_relaxed) == r->n) return 0;
  const int number = TakePart(r);
  r->next.store(number + 1, std::memory_order_relaxed);
  return number;
}

bool Pool::ClaimFirst(Region** region, int* number) {
  if (first_.load(std::memory_order_relaxed) == nullptr) return false;
  std::lock_guard lock(lock_);
  Region* r = *region = queue_.First();
  if (r == nullptr) return false;
  *number = TakePart(r);
  r->running.fetch_add(1, std::memory_order_relaxed);
  // release: a thread that sees all parts claimed also sees `running`
  r->next.store(*number + 1, std::memory_order_release);
  return true;
}

void Pool::Queue(Region* r) {
  r->queued = true;
  queue_.Add(r);
  first_.store(queue_.First(), std::memory_order_relaxed);
}

// Marks up to `workers` sleeping workers as called; returns how many to Wake.
int Pool::Call(int workers) {
  workers = std::min(workers, sleeping_);
  if (workers <= 0) return 0;
  if (called_ == 0) called_at_ = Now();
  sleeping_ -= workers;
  called_ += workers;
  signal_++;
  return workers;
}

// ---- workers

void Pool::RunWorker() {
  Region* r = nullptr;
  for (int number = 0;;) {
    if (!ClaimFirst(&r, &number)) {
      if (!SpinForWork()) Rest();
      continue;
    }
    looking_.fetch_sub(1, std::memory_order_relaxed);
    thread_state.region = r;
    thread_state.number = number;
    thread_state.n = r->n;
    SetOptions(r->options);
    r->part(r->arg, number, r->n);
    r->flags.fetch_or(Flags(), std::memory_order_relaxed);
    thread_state.region = nullptr;
    thread_state.n = 1;
    looking_.fetch_add(1, std::memory_order_relaxed);
    EndPart(r);
  }
}

// The last access to the region by a worker: its caller may continue and destroy it.
void Pool::EndPart(Region* r) {
  const std::atomic<uint32_t>* word = &r->running;
  if (r->running.fetch_sub(1, std::memory_order_acq_rel) == (kAsleep | 1)) Wake(word, 1);
}

bool Pool::SpinForWork() {
  Ns last = Now();
  const Ns limit = backoff_.Loaded(last) ? kSpinLoaded : kSpin;
  return SpinFor(
      limit, [&] { return first_.load(std::memory_order_relaxed) != nullptr; },
      [&](Ns now) {
        if (now - last > kGap) Delayed(now - last, now);
        last = now;
      });
}

void Pool::Rest() {
  std::unique_lock lock(lock_);
  if (queue_.First() != nullptr) return;
  looking_.fetch_sub(1, std::memory_order_relaxed);
  sleeping_++;
  bool watching = false;
  while (called_ == 0) {
    if (!watched_ && MayBeStuck()) {
      watching = watched_ = true;
      idle_looks_ = 0;
      looked_at_ = Now();
    } else if (watching && idle_looks_ > kIdleLooks) {
      watching = watched_ = false;
    }
    const uint32_t value = signal_.load(std::memory_order_relaxed);
    lock.unlock();
    Sleep(signal_, value, watching ? kLook : 0);
    lock.lock();
    if (watching && called_ == 0) Watch();
  }
  called_--;
  looking_.fetch_add(1, std::memory_order_relaxed);
  const Ns now = Now();
  if (now - called_at_ > kLate) backoff_.Late(now - called_at_, workers_, now);
  if (called_ > 0) called_at_ = now;
  if (!watching) return;
  watched_ = false;
  if (!MayBeStuck() || sleeping_ == 0) return;
  signal_++;
  lock.unlock();
  Wake(&signal_, 1);  // becomes the watcher
}

// Calls all workers for regions without a claim since the last check.
void Pool::Watch() {
  const Ns now = Now();
  if (now - looked_at_ < kLook * 9 / 10) return;
  looked_at_ = now;
  idle_looks_ = opened_ == opened_before_ ? idle_looks_ + 1 : 0;
  opened_before_ = opened_;
  const auto stuck = [](Region* r) {
    const int next = r->next.load(std::memory_order_relaxed);
    return std::exchange(r->seen, next) == next;
  };
  for (Region *r = lone_.First(), *after = nullptr; r != nullptr; r = after) {
    after = r->after;
    if (stuck(r)) Recruit(r);
  }
  if (Region* r = queue_.First(); r != nullptr && stuck(r)) Recruit(r);
}

// Under the lock. Wakes called workers that still sleep in the kernel; rare enough to do so thread_state.
void Pool::Recruit(Region* r) {
  if (!r->queued) {
    lone_.Remove(r);
    Queue(r);
  }
  const int wake = Call(r->n - r->next.load(std::memory_order_relaxed));
  if (wake > 0) Wake(&signal_, wake);
}

// ---- parts that wait for each other

void Pool::Barrier(Region* r) {
  const uint32_t before = r->barriers.load(std::memory_order_relaxed);
  if (r->at_barrier.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(r->n)) {
    r->at_barrier.store(0, std::memory_order_relaxed);
    r->barriers.store(before + 1, std::memory_order_release);
    Wake(&r->barriers, r->n);
    return;
  }
  if (r->next.load(std::memory_order_relaxed) < r->n) {
    std::lock_guard lock(lock_);
    if (r->next.load(std::memory_order_relaxed) < r->n) Recruit(r);
  }
  const auto passed = [&] { return r->barriers.load(std::memory_order_acquire) != before; };
  if (!SpinFor(kWait, passed, [](Ns) {}))
    while (!passed()) Sleep(r->barriers, before);
}

}  // namespace keel_threads

// ---- threads.h

using keel_threads::Pool;
using keel_threads::thread_state;

void keel_threads_run(int n, void (*part)(void* arg, int number, int n), void* arg) {
  if (n <= 1 || thread_state.region != nullptr) {
    for (int i = 0; i < n; i++) part(arg, i, n);
    return;
  }
  keel_threads::Region r;
  r.part = part;
  r.arg = arg;
  r.n = n;
  Pool::Get().Open(&r, thread_state.helpers);
  thread_state.region = &r;
  thread_state.n = n;
  part(arg, 0, n);
  Pool::Get().Close(&r);
  thread_state.region = nullptr;
  thread_state.n = 1;
}

int keel_threads_reserve(int n) { return keel_threads::fork_watch == 0 ? Pool::Get().Reserve(n) : 1; }
void keel_threads_set(int n) { thread_state.threads = n; }
int keel_threads_get() { return thread_state.threads; }
void keel_threads_set_helpers(int helpers) { thread_state.helpers = helpers; }
void keel_threads_set_gang(int gang) { thread_state.gang = gang != 0; }
int keel_threads_inside() { return thread_state.region != nullptr; }
