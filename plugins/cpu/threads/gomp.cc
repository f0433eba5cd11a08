// gomp.cc: the OpenMP functions that oneDNN imports, implemented on the pool. The renamed copy of oneDNN
// (rename.cc) imports GOMP_x as KEEL_x and omp_x as kel_x. These are the calls that GCC 4.8 generates for
// `#pragma omp`: between parallel_start and parallel_end the calling thread runs the region's function
// itself.
#include <array>
#include <cstdlib>

#include "plugins/cpu/threads/pool.h"

namespace keel_threads {
namespace {

using Function = void (*)(void* data);

// Regions that a thread has opened and not ended; only the outermost one has more than one part.
struct Opened {
  Region region;
  Function function = nullptr;
  void* data = nullptr;
  struct Outer {
    int number, n;
  };
  std::array<Outer, 16> outer;
  size_t depth = 0, active = 0;  // active: depth of the region with several parts
};
thread_local Opened opened;

// The iterations of a loop that the calling thread runs: every n-th chunk of `chunk` iterations, or one range
// (chunk 0).
struct Loop {
  long start, step, count, chunk;
  long turn;
};
thread_local Loop loop;

bool NextOf(Loop* l, long* first, long* last) {
  const long n = thread_state.n, me = thread_state.number;
  long from = 0, to = 0;
  if (l->chunk == 0) {
    if (l->turn > 0) return false;
    const long part = l->count / n, rest = l->count % n;
    from = me * part + std::min(me, rest);
    to = from + part + (me < rest ? 1 : 0);
  } else {
    from = (l->turn * n + me) * l->chunk;
    to = std::min(l->count, from + l->chunk);
  }
  l->turn++;
  if (from >= to) return false;
  *first = l->start + from * l->step;
  *last = l->start + to * l->step;
  return true;
}

}  // namespace
}  // namespace keel_threads

using namespace keel_threads;

extern "C" {

void KEEL_parallel_start(Function function, void* data, unsigned threads) {
  Opened& o = opened;
  if (o.depth == o.outer.size()) std::abort();
  o.outer[o.depth++] = {thread_state.number, thread_state.n};
  const int n = threads > 0 ? static_cast<int>(threads) : thread_state.threads;
  thread_state.number = 0;
  if (n <= 1 || thread_state.region != nullptr) {
    thread_state.n = 1;
    return;
  }
  o.function = function;
  o.data = data;
  o.region.arg = &o;
  o.region.n = thread_state.n = n;
  o.region.part = [](void* arg, int, int) {
    const auto* mine = static_cast<const Opened*>(arg);
    mine->function(mine->data);
  };
  Pool::Get().Open(&o.region, thread_state.helpers);
  thread_state.region = &o.region;
  o.active = o.depth;
}

void KEEL_parallel_end() {
  Opened& o = opened;
  if (o.depth == o.active) {
    Pool::Get().Close(&o.region);
    thread_state.region = nullptr;
    o.active = 0;
  }
  const auto [number, n] = o.outer[--o.depth];
  thread_state.number = number;
  thread_state.n = n;
}

void KEEL_barrier() {
  if (thread_state.n > 1) Pool::Get().Barrier(thread_state.region);
}

bool KEEL_loop_static_next(long* first, long* last) { return NextOf(&loop, first, last); }
bool KEEL_loop_static_start(long start, long end, long step, long chunk, long* first, long* last) {
  const long beyond = step > 0 ? step - 1 : step + 1;
  const bool none = step > 0 ? start >= end : start <= end;
  loop = {start, step, none ? 0 : (end - start + beyond) / step, chunk, 0};
  return NextOf(&loop, first, last);
}
void KEEL_loop_end_nowait() {}

int kel_get_thread_num() { return thread_state.number; }
int kel_get_num_threads() { return thread_state.n; }
int kel_get_max_threads() { return thread_state.threads; }
int kel_in_parallel() { return thread_state.region != nullptr; }
}
