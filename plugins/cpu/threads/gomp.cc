// gomp.cc: the functions of OpenMP that oneDNN imports, served by our pool to the copy of oneDNN that asks
// for them by other names (rename.cc): GOMP_x is KEEL_x there and omp_x is kel_x. They are what GCC 4.8 makes
// of `#pragma omp`: between parallel_start and parallel_end the calling thread runs the region's function
// itself.
#include <array>
#include <cstdlib>

#include "plugins/cpu/threads/pool.h"

namespace keel_threads {
namespace {

using Function = void (*)(void* data);

// The regions that a thread has opened and not ended; only the outermost has more than one part.
struct Opened {
  Region region;
  Function function = nullptr;
  void* data = nullptr;
  struct Outer {
    int number, n;
  };
  std::array<Outer, 16> outer;
  size_t depth = 0, active = 0;  // active: that of the one with more parts
};
thread_local Opened opened;

// The iterations of a loop that are this thread's: chunks of `chunk` iterations in turn, or one stretch (0).
struct Loop {
  long start, step, count, chunk;
  long turn;
};
thread_local Loop loop;

bool NextOf(Loop* l, long* first, long* last) {
  const long n = here.n, me = here.number;
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
  o.outer[o.depth++] = {here.number, here.n};
  const int n = threads > 0 ? static_cast<int>(threads) : here.threads;
  here.number = 0;
  if (n <= 1 || here.region != nullptr) {
    here.n = 1;
    return;
  }
  o.function = function;
  o.data = data;
  o.region.arg = &o;
  o.region.n = here.n = n;
  o.region.part = [](void* arg, int, int) {
    const auto* mine = static_cast<const Opened*>(arg);
    mine->function(mine->data);
  };
  Pool::Get().Open(&o.region, here.helpers);
  here.region = &o.region;
  o.active = o.depth;
}

void KEEL_parallel_end() {
  Opened& o = opened;
  if (o.depth == o.active) {
    Pool::Get().Close(&o.region);
    here.region = nullptr;
    o.active = 0;
  }
  const auto [number, n] = o.outer[--o.depth];
  here.number = number;
  here.n = n;
}

void KEEL_barrier() {
  if (here.n > 1) Pool::Get().Barrier(here.region);
}

bool KEEL_loop_static_next(long* first, long* last) { return NextOf(&loop, first, last); }
bool KEEL_loop_static_start(long start, long end, long step, long chunk, long* first, long* last) {
  const long beyond = step > 0 ? step - 1 : step + 1;
  const bool none = step > 0 ? start >= end : start <= end;
  loop = {start, step, none ? 0 : (end - start + beyond) / step, chunk, 0};
  return NextOf(&loop, first, last);
}
void KEEL_loop_end_nowait() {}

int kel_get_thread_num() { return here.number; }
int kel_get_num_threads() { return here.n; }
int kel_get_max_threads() { return here.threads; }
int kel_in_parallel() { return here.region != nullptr; }
}
