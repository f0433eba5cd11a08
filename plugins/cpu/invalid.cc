// invalid.cc: see invalid.h.
#include "invalid.h"

#include <atomic>
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace keel_cpu {
namespace {

#if defined(__x86_64__)  // what <cfenv> does, without the old x87 unit, which takes longer than a small
                         // region
bool Raised() { return (_mm_getcsr() & _MM_EXCEPT_INVALID) != 0; }
void Lower() { _mm_setcsr(_mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_INVALID)); }
void Raise() { _mm_setcsr(_mm_getcsr() | _MM_EXCEPT_INVALID); }
#else
bool Raised() { return std::fetestexcept(FE_INVALID) != 0; }
void Lower() { std::feclearexcept(FE_INVALID); }
void Raise() { std::feraiseexcept(FE_INVALID); }
#endif

std::atomic<uint64_t> last_number{0};
thread_local uint64_t cleared_for = 0;  // the watch that cleared this thread's flag last

template <class F>
void EachThread(int threads, F&& f) {
  if (threads == 1) return f();
#pragma omp parallel num_threads(threads)
  f();
}

}  // namespace

void RaiseInvalid() { Raise(); }

InvalidWatch::InvalidWatch(int threads) : threads_(threads), before_(Raised()) { Clear(); }
InvalidWatch::~InvalidWatch() {
  if (before_) Raise();
}

void InvalidWatch::Clear() {
  const uint64_t number = number_ = 1 + last_number.fetch_add(1, std::memory_order_relaxed);
  EachThread(threads_, [number] {
    Lower();
    cleared_for = number;
  });
}

InvalidWatch::Seen InvalidWatch::Look() const {
  std::atomic<bool> raised = false, replaced = false;
  EachThread(threads_, [&, number = number_] {
    if (Raised()) raised.store(true, std::memory_order_relaxed);
    if (cleared_for != number) replaced.store(true, std::memory_order_relaxed);
  });
  return {raised, replaced};
}

}  // namespace keel_cpu
