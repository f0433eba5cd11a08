// select.cc: select (three broadcast operands) and clamp; the loops are in select_loops.inc.
#include "plugins/cpu/elementwise/broadcast.h"
#include "plugins/cpu/elementwise/select_loops.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

template <class L>
struct Sized {
  L loop;
  int64_t size;  // bytes per element
};

keel_rc RunSelect(const keel_call* call) {
  const Sized<SelectLoop>& s = State<Sized<SelectLoop>>(call);
  const char* p = In<char>(call, 0);
  const char* a = In<char>(call, 1);
  const char* b = In<char>(call, 2);
  char* c = Out<char>(call, 0);
  if (call->count == 0) return KEEL_OK;
  const Walk<3> w = Broadcast<3>(call);
  const int64_t inner = w.Inner(), s0 = w.InnerStep(0), s1 = w.InnerStep(1), s2 = w.InnerStep(2);
  if (w.Rows() == 1) {
    ParallelFor(call, inner, 1, [&](int64_t i, int64_t end) {
      s.loop(p + i * s0, s0, a + i * s1 * s.size, s1, b + i * s2 * s.size, s2, c + i * s.size, end - i);
    });
    return KEEL_OK;
  }
  ParallelFor(call, w.Rows(), inner + 2, [&](int64_t begin, int64_t end) {
    w.Rows(begin, end, [&](int64_t row, const int64_t* at) {
      s.loop(p + at[0], s0, a + at[1] * s.size, s1, b + at[2] * s.size, s2, c + row * inner * s.size, inner);
    });
  });
  return Done(call);
}

keel_rc PrepareSelect(const Node& node, keel_launch* launch) {
  const int64_t size = ItemSize(node.In(1));
  return Keep(launch, Sized<SelectLoop>{Selects().select(size), size}, RunSelect);
}

keel_rc RunClamp(const keel_call* call) {
  const Sized<ClampLoop>& s = State<Sized<ClampLoop>>(call);
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  ParallelFor(call, call->count, 1, [&](int64_t begin, int64_t end) {
    s.loop(x + begin * s.size, In<char>(call, 1), In<char>(call, 2), y + begin * s.size, end - begin);
  });
  return Done(call);
}

keel_rc PrepareClamp(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  return Keep(launch, Sized<ClampLoop>{Selects().clamp(keel_dt_of(&x)), ItemSize(x)}, RunClamp);
}

constexpr uint32_t kFlags = KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE;
constexpr keel_impl kImpls[] = {
    Impl("select", "loop select", Prepare<PrepareSelect>, kFlags),
    Impl("clamp", "loop clamp", Prepare<PrepareClamp>, kFlags),
};

}  // namespace

Impls SelectImpls() { return kImpls; }

}  // namespace keel_cpu
