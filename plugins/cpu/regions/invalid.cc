// invalid.cc: see invalid.h.
#include "plugins/cpu/regions/invalid.h"

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace keel_cpu {
namespace {

// like <cfenv>, but without the x87 unit, whose access takes longer than a small region
#if defined(__x86_64__)
bool IsRaised() { return (_mm_getcsr() & _MM_EXCEPT_INVALID) != 0; }
void Lower() { _mm_setcsr(_mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_INVALID)); }
void Raise() { _mm_setcsr(_mm_getcsr() | _MM_EXCEPT_INVALID); }
#else
bool IsRaised() { return std::fetestexcept(FE_INVALID) != 0; }
void Lower() { std::feclearexcept(FE_INVALID); }
void Raise() { std::feraiseexcept(FE_INVALID); }
#endif

}  // namespace

void RaiseInvalid() { Raise(); }

InvalidWatch::InvalidWatch() : before_(IsRaised()) { Clear(); }
InvalidWatch::~InvalidWatch() {
  if (before_) Raise();
}
void InvalidWatch::Clear() { Lower(); }
bool InvalidWatch::Raised() const { return IsRaised(); }

}  // namespace keel_cpu
