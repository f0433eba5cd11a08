// parallel.h: how launches share the cores. One pool (threads/) serves oneDNN and the loops of this plugin,
// and the process has one budget: the cores that it may use. A launch has as many parts as it may use
// threads, independent of load, so load never changes its bits. Load only changes how many workers help: a
// launch counts its caller's core and takes workers from the rest of the budget. Without workers the caller
// runs all parts. Opening a region and waking a worker each cost a few tenths of a microsecond, so loops open
// one only if their cost justifies it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>

#include "abi/keel_plugin.h"
#include "plugins/cpu/threads/threads.h"

namespace keel_cpu {

// In simple element operations; cheaper loops stay on the calling thread.
inline constexpr int64_t kParallelCost = 32 * 1024;

// Threads that this process may use: the cores of its affinity mask at the first call, limited by the control
// group's quota and by how many threads the system lets it start. KEEL_CGROUP replaces /sys/fs/cgroup (for
// tests).
int Budget();

// Timeout for locks whose work is optional: after fork() a lock that another thread held is never released in
// the child.
inline constexpr std::chrono::milliseconds kPatience{10};

// The parts of one launch's regions, and its claim on workers until destruction. There is one part per thread
// that the launch may use, and one part inside another region. A nested launch (a node of a region) shares
// the outer team.
class Team {
 public:
  explicit Team(const keel_call* call) : Team(call->env->threads) {}
  explicit Team(uint32_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int Size() const { return size_; }

 private:
  int size_ = 1, claimed_ = 0;
};

// Whether the run was cancelled; loops check about once per millisecond.
inline bool Cancelled(const keel_call* call) {
  return __atomic_load_n(call->env->cancelled, __ATOMIC_RELAXED) != 0;
}
// The result of a run whose loops may have stopped early.
inline keel_rc Done(const keel_call* call) { return Cancelled(call) ? KEEL_CANCELLED : KEEL_OK; }

inline constexpr int64_t kChunkCost = 4 * 1024 * 1024;

// Calls f(begin, end) over consecutive ranges of [begin, end) until the run is cancelled; returns whether all
// ran.
template <class F>
bool InChunks(const keel_call* call, int64_t begin, int64_t end, int64_t cost, F&& f) {
  const int64_t step = std::max<int64_t>(1, kChunkCost / std::max<int64_t>(cost, 1));
  for (; begin < end && !Cancelled(call); begin += std::min(step, end - begin))
    f(begin, begin + std::min(step, end - begin));
  return begin >= end;
}
// Length of the pieces of a long loop unit; a multiple of all tile and vector sizes.
inline constexpr int64_t kPiece = 256 * 1024;
inline int64_t Pieces(int64_t n) { return n <= kPiece ? 1 : (n + kPiece - 1) / kPiece; }
// Calls f(row, begin, end) for the pieces [first, stop), numbered through all rows of n elements.
template <class F>
void EachPiece(int64_t first, int64_t stop, int64_t n, F&& f) {
  const int64_t pieces = Pieces(n);
  for (int64_t u = first; u < stop; u++) {
    const int64_t row = pieces == 1 ? u : u / pieces, begin = (u - row * pieces) * kPiece;
    f(row, begin, std::min(n, begin + kPiece));
  }
}

// Sets the number of parts of oneDNN's regions on the calling thread.
inline void SetThreads(int n) { keel_threads_set(n); }

// Calls f(number) for 0 to n - 1 on up to n threads.
template <class F>
void RunParts(int n, F&& f) {
  keel_threads_run(
      n, [](void* arg, int number, int) { (*static_cast<std::remove_reference_t<F>*>(arg))(number); }, &f);
}

// Calls f(begin, end) over ranges of [0, n), in parallel if n items of this cost justify it. After a
// cancellation ranges may be missing: see Done.
template <class F>
void ParallelFor(const keel_call* call, int64_t n, int64_t cost, F&& f) {
  if (n <= 0) return;
  const int64_t work = n * std::max<int64_t>(cost, 1);
  if (work < kParallelCost) return f(int64_t{0}, n);
  const Team lent(call);
  const int threads = static_cast<int>(std::min<int64_t>(lent.Size(), n));
  if (threads == 1) return static_cast<void>(InChunks(call, 0, n, cost, f));
  RunParts(threads, [&, part = n / threads, rest = n % threads](int64_t me) {
    const int64_t begin = me * part + std::min(me, rest);
    InChunks(call, begin, begin + part + (me < rest ? 1 : 0), cost, f);
  });
}

// Calls f(row, begin, end) over rows of n elements, long rows in pieces. `cost` is that of four elements.
template <class F>
void ParallelPieces(const keel_call* call, int64_t rows, int64_t n, int64_t cost, F&& f) {
  ParallelFor(call, rows * Pieces(n), std::min(n, kPiece) * cost / 4 + 2,
              [&](int64_t first, int64_t stop) { EachPiece(first, stop, n, f); });
}
// y[i] = v for i below n.
template <class T>
void Fill(const keel_call* call, T* y, int64_t n, T v) {
  ParallelFor(call, n, 1, [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, v); });
}
// memcpy that stops on cancellation.
inline void CopyBytes(const keel_call* call, void* to, const void* from, int64_t bytes) {
  ParallelPieces(call, 1, bytes, 1, [&](int64_t, int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace keel_cpu
