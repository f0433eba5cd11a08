// parallel.h: how loops use several cores. There is one pool, OpenMP's, shared with oneDNN. A region
// costs about 0.4 microseconds with spinning workers and 40 with sleeping ones, so loops enter one only
// when their cost says so; the decision is made before the region.
#pragma once

#include <omp.h>

#include <algorithm>

#include "abi/keel_plugin.h"

namespace keel_cpu {

// Cost is counted in simple element operations; below this a loop stays on its thread.
inline constexpr int64_t kParallelCost = 32 * 1024;

// How many threads this launch may use: one in a forked child (OpenMP's workers do not survive fork
// and waiting for them would hang) and inside another region.
int Threads(const keel_call* call);

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
  int threads = n < 2 || n * std::max<int64_t>(cost, 1) < kParallelCost ? 1 : Threads(call);
  threads = static_cast<int>(std::min<int64_t>(threads, n));
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
