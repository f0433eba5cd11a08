// parallel.h: how launches share the cores. One pool (threads/) serves oneDNN and our loops, and the process
// has one budget: the cores that it may use. A launch is cut into as many parts as it may have threads,
// whatever else runs, so its bits do not depend on that. How many workers help with the parts does: a launch
// counts its caller's core and takes what is left for workers. Without any the caller runs all parts. A
// region costs some tenths of a microsecond, and waking a worker some, so loops enter one only when their
// cost says so.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>

#include "abi/keel_plugin.h"
#include "plugins/cpu/threads/threads.h"

namespace keel_cpu {

// Cost is counted in simple element operations; below this a loop stays on its thread.
inline constexpr int64_t kParallelCost = 32 * 1024;

// Threads that this process may use: the cores of its affinity when first asked, limited by the control
// group's quota and by what the system lets us start. KEEL_CGROUP names a folder to read in place of
// /sys/fs/cgroup, for tests.
int Budget();

// How long to wait for what can be done without. Where a process forks while another thread has such a lock,
// no thread of the child gives it back.
inline constexpr std::chrono::milliseconds kPatience{10};

// The parts of one launch's regions, and its claim on workers until it is destroyed: as many parts as the
// launch may use threads, one inside another region. A launch inside a launch (a node of a region) shares the
// outer one's.
class Team {
 public:
  explicit Team(const keel_call* call) : Team(call->env->threads) {}
  explicit Team(uint32_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int Size() const { return size_; }

 private:
  int size_ = 1, taken_ = 0;
};

// A run that nobody waits for any more: loops ask after each millisecond or so.
inline bool Cancelled(const keel_call* call) {
  return __atomic_load_n(call->env->cancelled, __ATOMIC_RELAXED) != 0;
}
// What a run returns whose loops may have stopped early.
inline keel_rc Done(const keel_call* call) { return Cancelled(call) ? KEEL_CANCELLED : KEEL_OK; }

inline constexpr int64_t kChunkCost = 4 * 1024 * 1024;

// f(begin, end) over parts of [begin, end), until the run is cancelled; whether all was done.
template <class F>
bool InChunks(const keel_call* call, int64_t begin, int64_t end, int64_t cost, F&& f) {
  const int64_t step = std::max<int64_t>(1, kChunkCost / std::max<int64_t>(cost, 1));
  for (; begin < end && !Cancelled(call); begin += std::min(step, end - begin))
    f(begin, begin + std::min(step, end - begin));
  return begin >= end;
}
// What one unit of a loop is cut into where it may be long: a multiple of all tiles and vectors.
inline constexpr int64_t kPiece = 256 * 1024;
inline int64_t Pieces(int64_t n) { return n <= kPiece ? 1 : (n + kPiece - 1) / kPiece; }
// f(row, begin, end) of the pieces [first, stop) of rows of n elements each, counted through all rows.
template <class F>
void EachPiece(int64_t first, int64_t stop, int64_t n, F&& f) {
  const int64_t pieces = Pieces(n);
  for (int64_t u = first; u < stop; u++) {
    const int64_t row = pieces == 1 ? u : u / pieces, begin = (u - row * pieces) * kPiece;
    f(row, begin, std::min(n, begin + kPiece));
  }
}

// Sets how many parts oneDNN's regions have on the calling thread.
inline void SetThreads(int n) { keel_threads_set(n); }

// f(number) for the numbers from 0 to n - 1, on up to n threads at once.
template <class F>
void RunParts(int n, F&& f) {
  keel_threads_run(
      n, [](void* arg, int number, int) { (*static_cast<std::remove_reference_t<F>*>(arg))(number); }, &f);
}

// f(begin, end) over parts of [0, n), in parallel where n items of this cost are worth it. After a
// cancellation some parts are left out: see Done.
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

// f(row, begin, end) over rows of n elements each, in pieces where they are long. Cost: of four elements.
template <class F>
void ParallelPieces(const keel_call* call, int64_t rows, int64_t n, int64_t cost, F&& f) {
  ParallelFor(call, rows * Pieces(n), std::min(n, kPiece) * cost / 4 + 2,
              [&](int64_t first, int64_t stop) { EachPiece(first, stop, n, f); });
}
// memcpy that looks.
inline void CopyBytes(const keel_call* call, void* to, const void* from, int64_t bytes) {
  ParallelPieces(call, 1, bytes, 1, [&](int64_t, int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace keel_cpu
