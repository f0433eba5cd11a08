// cast_loops.cc: compiles cast_loops.inc per SIMD level and selects one.
#include "plugins/cpu/elementwise/cast_loops.h"

#include <limits>
#include <type_traits>

#include "plugins/cpu/common.h"
#include "plugins/cpu/simd/simd.h"
#include "sdk/cpp/keel/storage.hpp"

namespace keel_cpu {
namespace {

using CastRow = UnaryLoop (*)(keel_dt from, keel_dt to);

struct Bool {
  uint8_t v;
};
inline uint8_t Widen(Bool b) { return b.v != 0; }
using keel_cpu::Widen;

template <class F>
UnaryLoop Visit(keel_dt dt, F&& f) {
  if (dt == KEEL_BOOL) return f.template operator()<Bool>();
  return VisitAll(dt, f);
}

}  // namespace
}  // namespace keel_cpu

#define KEEL_LOOPS "plugins/cpu/elementwise/cast_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

UnaryLoop FindCast(keel_dt from, keel_dt to) {
  return keel::is_storage(from) || keel::is_storage(to) ? nullptr : (*KEEL_PICK(kCast))(from, to);
}

}  // namespace keel_cpu
