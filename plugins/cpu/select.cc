// select.cc: select (three operands, broadcast) and clamp.
#include "broadcast.h"
#include "parallel.h"
#include "simd.h"

namespace keel_cpu {
namespace {

template <class T>
T Choose(uint8_t p, T x, T y) {
  return p != 0 ? x : y;
}
template <class T>
void SelectRow(const uint8_t* p, int64_t sp, const T* a, int64_t sa, const T* b, int64_t sb, T* c,
               int64_t n) {
  // Both sides are read before the choice, so that it needs no branch and the loops vectorise.
  if (sp != 0 && sa != 0 && sb != 0) {
    KEEL_IVDEP
    for (int64_t i = 0; i < n; i++) c[i] = Choose(p[i], a[i], b[i]);
  } else if (sp != 0 && sa == 0 && sb != 0) {
    const T x = *a;
    KEEL_IVDEP
    for (int64_t i = 0; i < n; i++) c[i] = Choose(p[i], x, b[i]);
  } else if (sp != 0 && sa != 0) {
    const T y = *b;
    KEEL_IVDEP
    for (int64_t i = 0; i < n; i++) c[i] = Choose(p[i], a[i], y);
  } else {
    for (int64_t i = 0; i < n; i++) c[i] = p[i * sp] ? a[i * sa] : b[i * sb];
  }
}

template <class T>
keel_rc RunSelect(const keel_call* call) {
  const uint8_t* p = In<uint8_t>(call, 0);
  const T* a = In<T>(call, 1);
  const T* b = In<T>(call, 2);
  T* c = Out<T>(call, 0);
  if (call->count == 0) return KEEL_OK;
  const Walk<3> w = Broadcast<3>(call);
  const int64_t inner = w.Inner(), s0 = w.InnerStep(0), s1 = w.InnerStep(1), s2 = w.InnerStep(2);
  if (w.Rows() == 1) {
    ParallelFor(call, inner, 1, [&](int64_t i, int64_t end) {
      SelectRow(p + i * s0, s0, a + i * s1, s1, b + i * s2, s2, c + i, end - i);
    });
    return KEEL_OK;
  }
  ParallelFor(call, w.Rows(), inner + 2, [&](int64_t begin, int64_t end) {
    w.Rows(begin, end, [&](int64_t row, const int64_t* at) {
      SelectRow(p + at[0], s0, a + at[1], s1, b + at[2], s2, c + row * inner, inner);
    });
  });
  return KEEL_OK;
}

keel_rc PrepareSelect(const Node& node, keel_launch* launch) {
  launch->run = VisitSize(ItemSize(node.In(1)), []<class T>() -> Run { return RunSelect<T>; });
  return KEEL_OK;
}

template <class T>
keel_rc RunClamp(const keel_call* call) {
  using C = Compute<T>;
  const T* x = In<T>(call, 0);
  T* y = Out<T>(call, 0);
  const C lo = Widen(*In<T>(call, 1)), hi = Widen(*In<T>(call, 2));
  ParallelFor(call, call->count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      C v = Widen(x[i]);
      v = v < lo || lo != lo ? lo : v;  // NaN in x fails both tests and stays
      v = hi < v || hi != hi ? hi : v;
      Narrow(v, y[i]);
    }
  });
  return KEEL_OK;
}

keel_rc PrepareClamp(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  launch->run = VisitAll(keel_dt_of(&x), []<class T>() -> Run { return RunClamp<T>; });
  return KEEL_OK;
}

constexpr uint32_t kFlags = KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE;
constexpr keel_impl kImpls[] = {
    Impl("select", "loop select", Prepare<PrepareSelect>, kFlags),
    Impl("clamp", "loop clamp", Prepare<PrepareClamp>, kFlags),
};

}  // namespace

Impls SelectImpls() { return kImpls; }

}  // namespace keel_cpu
