// pool.h: the pool of workers that all regions of the process share. See threads.h for what a region is.
//
// Parts may wait for each other in loops of their own (oneDNN's products that split sums, its barriers). Such
// a region ends if each of its n parts gets a thread at some time without waiting for one of the others to
// end. That holds:
//   - there are n - 1 workers or more, and a thread claims a part only when it runs none;
//   - workers claim only parts of the first region of `queue_`, and a region enters at the end and leaves
//     it when its last part is claimed. So while a region is first and has unclaimed parts, no worker is in a
//     part of a later one; those in earlier ones run regions all of whose parts are claimed, and come back.
//     So all workers come to the first region or sleep, and whoever sleeps is woken by the watcher (below): n
//     - 1 of them and the caller are n threads.
// A region that is opened without helpers is not in the queue but in `lone_`. Its caller runs it all, unless
// it is stuck: while there are lone regions one worker, the watcher, looks every 8 milliseconds, and one in
// which no part was claimed since it looked last is moved to the queue.
#pragma once

#include <pthread.h>

#include <array>

#include "plugins/cpu/threads/backoff.h"

namespace keel_threads {

using Part = void (*)(void* arg, int number, int n);

// A region while it is open. It is its caller's; workers touch it between a claim and the end of the part.
struct Region {
  Part part = nullptr;
  void* arg = nullptr;
  int n = 1;
  int helpers = 0;

  std::atomic<int> next{1};  // first unclaimed part; changes under the pool's lock
  // Parts that workers have claimed and not ended; kAsleep: the caller sleeps.
  std::atomic<uint32_t> running{0};
  std::atomic<uint32_t> at_barrier{0}, barriers{0};
  std::atomic<unsigned> flags{0};  // floating-point exceptions of all parts
  unsigned options = 0;            // the caller's floating-point options
  int seen = 0;                    // `next` when the watcher looked
  bool queued = false;
  Ns opened = 0;
  Region *before = nullptr, *after = nullptr;
};

class Regions {  // in the order in which they came
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
  // The caller runs part 0 between Open and Close, which runs what nobody has claimed and waits for the rest.
  void Open(Region* r, int helpers);
  void Close(Region* r);
  // Part `number` waits until all n are here.
  void Barrier(Region* r);

  int Workers() const { return workers_.load(std::memory_order_relaxed); }
  // A thread of ours was not running for so long though it could have.
  void Delayed(Ns span, Ns now);

 private:
  static constexpr uint32_t kAsleep = 1u << 31;

  static void* Work(void* pool);
  void Start();  // one worker
  void Serve();
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
  std::atomic<Region*> first_{nullptr};  // of queue_, to be seen without the lock
  std::atomic<uint32_t> signal_{0};      // what workers sleep on
  std::atomic<int> looking_{0};          // workers that look for work without being asked
  int sleeping_ = 0, called_ = 0;        // called: woken for a region and not up yet
  Ns called_at_ = 0, looked_at_ = 0;     // looked: the watcher
  bool watched_ = false;
  uint64_t opened_ = 0, opened_before_ = 0;  // regions, until now and until the watcher looked
  int idle_looks_ = 0;
  std::atomic<int> workers_{0};
  Backoff backoff_;
};

// What a thread knows of where it is.
struct Place {
  Region* region = nullptr;            // of more than one part
  int number = 0, n = 1;               // as OpenMP numbers threads: 0 of 1 in a region inside another one
  int threads = 1, helpers = INT_MAX;  // as keel_threads_set and keel_threads_set_helpers say
  bool meeting = false;
};
inline thread_local Place here;

}  // namespace keel_threads
