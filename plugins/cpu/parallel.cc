// parallel.cc: see parallel.h.
#include "parallel.h"

#include <pthread.h>

namespace keel_cpu {
namespace {

bool in_child = false;  // written once, by the child's only thread
const int fork_watch = pthread_atfork(nullptr, nullptr, [] { in_child = true; });

}  // namespace

int Threads(const keel_call* call) {
  if (fork_watch != 0 || in_child || omp_in_parallel()) return 1;
  const uint32_t threads = std::min<uint32_t>(call->env->threads, 1024);
  return threads == 0 ? 1 : static_cast<int>(threads);
}

}  // namespace keel_cpu
