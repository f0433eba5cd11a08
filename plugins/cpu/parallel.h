// parallel.h: how launches share the cores. There is one pool, OpenMP's, for oneDNN and our loops, and one
// budget for the whole process: the cores that this process may use. A launch tries to get a team; one that
// finds too few threads left runs with its own thread only, so many sessions never run more threads than
// there are callers and cores. A region costs about 0.4 microseconds with spinning workers and 40 with
// sleeping ones, so loops enter one only when their cost says so; that is decided before the region.
#pragma once

#include <omp.h>

#include <algorithm>

#include "abi/keel_plugin.h"

namespace keel_cpu {

// Cost is counted in simple element operations; below this a loop stays on its thread.
inline constexpr int64_t kParallelCost = 32 * 1024;

// Cores that this process may use: its affinity when first asked, limited by the control group's quota.
// One in a forked child. KEEL_CGROUP names a folder to read in place of /sys/fs/cgroup, for tests.
int Budget();

// Threads lent to one launch, until it is destroyed: as many as the launch may use, or one. One in a forked
// child (OpenMP's workers do not survive fork and waiting for them would hang) and inside another region.
// A launch inside a launch (a node of a region) shares the outer one's.
class Team {
 public:
  explicit Team(const keel_call* call);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int Size() const { return size_; }

 private:
  int size_ = 1, taken_ = 0;
};

// Has the run been told to stop? Its results are dropped then, so a loop may end wherever it is.
inline bool Cancelled(const keel_call* call) {
  return __atomic_load_n(call->env->cancelled, __ATOMIC_RELAXED) != 0;
}
// How much is done between two looks at that flag: some milliseconds of simple operations.
inline constexpr int64_t kCancelCost = int64_t{1} << 24;

template <class F>
void InSteps(const keel_call* call, int64_t begin, int64_t end, int64_t cost, F& f) {
  const int64_t step = std::max<int64_t>(1, kCancelCost / std::max<int64_t>(cost, 1));
  if (end - begin <= step) return f(begin, end);
  for (; begin < end && !Cancelled(call); begin += step) f(begin, std::min(end, begin + step));
}

// Sets the calling thread's OpenMP team size, which oneDNN asks for.
inline void SetThreads(int n) {
  if (omp_get_max_threads() != n) omp_set_num_threads(n);
}

// f(begin, end) over parts of [0, n), in parallel where n items of this cost are worth it. f may be
// called several times on one thread; when the run is told to stop, the rest is left undone.
template <class F>
void ParallelFor(const keel_call* call, int64_t n, int64_t cost, F&& f) {
  if (n <= 0) return;
  if (n < 2 || n * std::max<int64_t>(cost, 1) < kParallelCost)
    return InSteps(call, int64_t{0}, n, cost, f);
  const Team lent(call);
  const int threads = static_cast<int>(std::min<int64_t>(lent.Size(), n));
  if (threads == 1) return InSteps(call, int64_t{0}, n, cost, f);
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = omp_get_num_threads(), me = omp_get_thread_num(), part = n / team, rest = n % team;
    const int64_t begin = me * part + std::min(me, rest);
    if (const int64_t size = part + (me < rest ? 1 : 0); size > 0)
      InSteps(call, begin, begin + size, cost, f);
  }
}

}  // namespace keel_cpu
