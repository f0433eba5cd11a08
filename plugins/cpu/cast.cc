// cast.cc: between all dtypes. Floats to integers truncate, saturate and make 0 of NaN; integers wrap;
// to bool is "not zero"; to a 16-bit float rounds once.
#include <limits>
#include <type_traits>

#include "common.h"
#include "parallel.h"

namespace keel_cpu {
namespace {

struct Bool {
  uint8_t v;
};
inline uint8_t Widen(Bool b) { return b.v != 0; }
using keel_cpu::Widen;

template <class To, class From>
To FloatToInt(From v) {
  // The bounds as floats: the lower one is exact, the upper one rounds up to a power of two.
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From kHigh = static_cast<From>(std::numeric_limits<To>::max());
  if (!(v > kLow)) return v != v ? To{0} : std::numeric_limits<To>::min();
  if (v >= kHigh) return std::numeric_limits<To>::max();
  return static_cast<To>(v);
}

template <class To, class From>
void Convert(From from, To& to) {
  if constexpr (std::is_same_v<To, Bool>) {
    to.v = from != 0;
  } else if constexpr (std::is_same_v<To, F16> || std::is_same_v<To, BF16>) {
    if constexpr (std::is_same_v<From, float>)
      Narrow(from, to);
    else
      Narrow(ToOdd(static_cast<double>(from)), to);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    to = FloatToInt<To>(from);
  } else {
    to = static_cast<To>(from);
  }
}

template <class From, class To>
keel_rc RunCast(const keel_call* call) {
  const From* x = In<From>(call, 0);
  To* y = Out<To>(call, 0);
  ParallelFor(call, call->count, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) Convert(Widen(x[i]), y[i]);
  });
  return KEEL_OK;
}

template <class F>
Run Visit(keel_dt dt, F&& f) {
  if (dt == KEEL_BOOL) return f.template operator()<Bool>();
  return VisitAll(dt, f);
}

keel_rc PrepareCast(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  launch->run = Visit(keel_dt_of(&x), [&]<class From>() -> Run {
    return Visit(keel_dt_of(&y), []<class To>() -> Run { return RunCast<From, To>; });
  });
  return KEEL_OK;
}

constexpr keel_impl kImpls[] = {
    Impl("cast", "loop cast", Prepare<PrepareCast>, KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE),
};

}  // namespace

Impls CastImpls() { return kImpls; }

}  // namespace keel_cpu
