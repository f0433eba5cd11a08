// pool.h: the pool of workers that all regions of the process share. threads.h defines a region.
//
// Parts may wait for each other in spin loops (oneDNN's products with split sums, its barriers). Such a
// region ends if each of its n parts eventually gets a thread without waiting for another part to end. Proof:
// there are at least n - 1 workers, and a thread claims a part only when it runs none. Workers claim only
// parts of the first region of `queue_`; a region enters at the end and leaves when its last part is claimed.
// So while a region is first and has unclaimed parts, no worker is in a part of a later region, and workers
// in earlier regions run parts that are all claimed, and return. So all workers reach the first region or
// sleep, and the watcher (below) wakes the sleepers: n - 1 workers and the caller are n threads.
//
// A region opened without helpers is in `lone_`, not in the queue. Its caller runs all parts unless it is
// stuck: while there are lone regions one worker, the watcher, checks every 8 milliseconds and moves a region
// without a claim since the last check to the queue.
#pragma once

#include <pthread.h>

#include <array>

#include "plugins/cpu/threads/backoff.h"

namespace keel_threads {

using Part = void (*)(void* arg, int number, int n);

// An open region. Its caller owns it; workers access it between a claim and the end of the part.
struct Region {
  Part part = nullptr;
  void* arg = nullptr;
  int n = 1;
  int helpers = 0;

  std::atomic<int> next{1};  // first unclaimed part; written under the pool's lock
  // Parts that workers have claimed and not finished; kAsleep is set while the caller sleeps.
  std::atomic<uint32_t> running{0};
  std::atomic<uint32_t> at_barrier{0}, barriers{0};
  std::atomic<unsigned> flags{0};  // floating-point exceptions of all parts
  unsigned options = 0;            // the caller's floating-point control bits
  int seen = 0;                    // `next` at the watcher's last check
  bool queued = false;
  Ns opened = 0;
  Region *before = nullptr, *after = nullptr;
};

class Regions {  // FIFO
 public:
  Region* First() const { return first_; }
  void Add(Region* r);
  void Remove(Region* r);

 private:
  Region *first_ = nullptr, *last_ = nullptr;
};

class Pool {
 public:
  static Pool& Get();

  int Reserve(int n);
  // Part 0 runs between Open and Close. Close runs the unclaimed parts and waits for the others.
  void Open(Region* r, int helpers);
  void Close(Region* r);
  // Blocks a part until all n parts have called it.
  void Barrier(Region* r);

  int Workers() const { return workers_.load(std::memory_order_relaxed); }
  // Reports that a runnable thread did not run for `span`.
  void Delayed(Ns span, Ns now);

 private:
  static constexpr uint32_t kAsleep = 1u << 31;

  static void* Work(void* pool);
  void Start();  // starts one worker
  void RunWorker();
  bool ClaimFirst(Region** r, int* number);
  int ClaimOwn(Region* r);
  int TakePart(Region* r);
  void EndPart(Region* r);
  void Await(Region* r);
  bool SpinForWork();
  void Rest();
  bool MayBeStuck() const { return queue_.First() != nullptr || lone_.First() != nullptr; }
  void Queue(Region* r);
  int Call(int workers);
  void Watch();
  void Recruit(Region* r);

  Lock lock_;
  Regions queue_, lone_;
  std::atomic<Region*> first_{nullptr};  // head of queue_, readable without the lock
  std::atomic<uint32_t> signal_{0};      // the futex that workers sleep on
  std::atomic<int> looking_{0};          // workers that spin for work
  int sleeping_ = 0, called_ = 0;        // called: woken for a region, not yet running
  Ns called_at_ = 0, looked_at_ = 0;     // looked: the watcher's last check
  bool watched_ = false;
  uint64_t opened_ = 0, opened_before_ = 0;  // regions, in total and at the watcher's last check
  int idle_looks_ = 0;
  std::atomic<int> workers_{0};
  Backoff backoff_;
};

// The calling thread's position in regions.
struct ThreadState {
  Region* region = nullptr;            // of more than one part
  int number = 0, n = 1;               // OpenMP's thread number and count: 0 of 1 in a nested region
  int threads = 1, helpers = INT_MAX;  // as set by keel_threads_set and keel_threads_set_helpers
  bool gang = false;
};
inline thread_local ThreadState thread_state;

}  // namespace keel_threads
