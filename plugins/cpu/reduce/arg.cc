// arg.cc: along one dim: arg_max, arg_min, cumsum, linear_recurrence. A tensor is viewed as [outer, n,
// inner].
#include <algorithm>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/reduce/loops.h"
#include "plugins/cpu/reduce/scan_loops.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

struct Lines {
  int64_t outer, n, inner;
  Lines(const keel_tensor& t, int64_t axis)
      : outer(Product(t.shape, axis)),
        n(t.shape[axis]),
        inner(Product(t.shape + axis + 1, t.ndim - axis - 1)) {}
  int64_t Count() const { return outer * inner; }
  int64_t First(int64_t line) const { return line / inner * n * inner + line % inner; }
};

// Whether a is ordered before b: NaN first, then the greater (or lesser).
template <bool kMax, class T>
bool Before(T a, T b) {
  if (a != a || b != b) return a != a && b == b;
  return kMax ? b < a : a < b;
}

struct Arg {
  int64_t axis;
  bool last;
  const ReduceOp* best;  // the maximum (minimum) of a line; NaN wins
};
// The index of a value in a line: the first, or the last.
template <class T>
int64_t IndexOf(const T* p, int64_t n, T value, bool last) {
  const auto v = Widen(value);
  const bool nan = v != v;
  const auto is = [=](T x) { return Widen(x) == v || (nan && Widen(x) != Widen(x)); };
  constexpr int64_t kBlock = 64;
  for (int64_t b = 0, blocks = (n + kBlock - 1) / kBlock; b < blocks; b++) {
    const int64_t first = (last ? blocks - 1 - b : b) * kBlock, stop = std::min(n, first + kBlock);
    bool here = false;
    for (int64_t i = first; i < stop; i++) here |= is(p[i]);
    for (int64_t i = first; here && i < stop; i++)
      if (const int64_t at = last ? first + stop - 1 - i : i; is(p[at])) return at;
  }
  return -1;
}
// The index of the best element of a line: the best element of each block, then its index in the best block,
// so that a line is read from memory once.
template <bool kMax, class T>
int64_t Find(const keel_call* call, const ReduceOp& best, const T* p, int64_t n, bool last) {
  constexpr int64_t kBlock = 4 * kReduceTile;
  T found{};
  int64_t first = -1;
  for (int64_t i = 0; i < n && !Cancelled(call); i += kBlock) {
    alignas(kAccumulatorSize) char acc[kAccumulatorSize];
    T now;
    best.start(acc, 1);
    best.row(p + i, std::min(kBlock, n - i), acc);
    best.finish(acc, 1, n, &now);
    const bool better =
        last ? !Before<kMax>(Widen(found), Widen(now)) : Before<kMax>(Widen(now), Widen(found));
    if (first < 0 || better) first = i, found = now;
  }
  return first < 0 ? 0 : first + IndexOf(p + first, std::min(kBlock, n - first), found, last);
}
template <bool kMax, class T>
keel_rc RunArg(const keel_call* call) {
  const Arg& s = State<Arg>(call);
  const Lines lines(*call->in[0], s.axis);
  if (lines.n == 0 && call->count > 0)
    return call->env->host->fail(
        KEEL_RANGE, kMax ? "arg_max: the dim has no elements" : "arg_min: the dim has no elements");
  const T* x = In<T>(call, 0);
  int64_t* y = Out<int64_t>(call, 0);
  ParallelFor(call, call->count, lines.n * 2, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; line++) {
      const T* p = x + lines.First(line);
      if (lines.inner == 1 && lines.n >= 32) {
        y[line] = Find<kMax>(call, *s.best, p, lines.n, s.last);
        continue;
      }
      auto found = Widen(p[0]);
      int64_t best = 0;
      InChunks(call, 1, lines.n, 4, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; i++) {
          const auto now = Widen(p[i * lines.inner]);
          if (s.last ? !Before<kMax>(found, now) : Before<kMax>(now, found)) best = i, found = now;
        }
      });
      y[line] = best;
    }
  });
  return Done(call);
}
template <bool kMax>
keel_rc PrepareArg(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  const ReduceOp* best = FindReduction(kMax ? "reduce_max" : "reduce_min", keel_dt_of(&x));
  if (best == nullptr) Throw(KEEL_UNIMPLEMENTED, "arg_max and arg_min have no CPU loop for this dtype");
  return Keep(launch, Arg{node.Int("axis"), node.Flag("last"), best},
              VisitAll(keel_dt_of(&x), []<class T>() -> Run { return RunArg<kMax, T>; }));
}

// Integers wrap: computed unsigned.
template <class T>
using Running = std::conditional_t<std::is_integral_v<Compute<T>>, uint64_t, double>;

constexpr int64_t kTogether = 256;  // adjacent lines, whose elements are computed row by row

// Calls step(now, at, first) for each element of `count` adjacent lines in order, or from the end: now is 0
// before the first one; at is the element's place.
template <class T, int64_t kMost, class F>
void StepLines(const keel_call* call, const Lines& lines, int64_t line, int64_t count, bool reverse,
               int64_t cost, const F& step) {
  const int64_t start = lines.First(line);
  Running<T> now[kMost];
  std::fill(now, now + count, Running<T>{});
  InChunks(call, 0, lines.n, cost * count, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
      const int64_t at = start + (reverse ? lines.n - 1 - i : i) * lines.inner;
      KEEL_IVDEP
      for (int64_t k = 0; k < (kMost == 1 ? 1 : count); k++) step(now[k], at + k, i == 0);
    }
  });
}
// The same for all lines from `first` on.
template <class T, class F>
keel_rc AlongLines(const keel_call* call, const Lines& lines, int64_t first, bool reverse, int64_t cost,
                   const F& step) {
  ParallelFor(call, lines.Count() - first, lines.n * cost, [&](int64_t begin, int64_t end) {
    for (int64_t line = first + begin, count; line < first + end; line += count) {
      count = std::min({kTogether, first + end - line, lines.inner - line % lines.inner});
      if (count == 1)
        StepLines<T, 1>(call, lines, line, 1, reverse, cost, step);
      else
        StepLines<T, kTogether>(call, lines, line, count, reverse, cost, step);
    }
  });
  return Done(call);
}

struct Cumsum {
  int64_t axis;
  bool exclusive, reverse;
};
// Four lines of adjacent elements.
void SumFour(const keel_call* call, ScanLoop loop, const float* x, float* y, int64_t n, bool reverse) {
  double sums[4] = {};
  InChunks(call, 0, n, 1, [&](int64_t from, int64_t to) {
    const int64_t at = reverse ? n - 1 - from : from;
    loop(x + at, y + at, to - from, n, sums);
  });
}
// All lines but the last ones of a tensor whose lines are of adjacent elements; returns how many.
int64_t SumByFours(const keel_call* call, const Lines& lines, const Cumsum& s) {
  const ScanLoop loop = FindScan(s.reverse, s.exclusive);
  if (lines.inner != 1 || loop == nullptr) return 0;
  const int64_t fours = lines.outer / 4, size = 4 * lines.n;
  ParallelFor(call, fours, size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      SumFour(call, loop, In<float>(call, 0) + i * size, Out<float>(call, 0) + i * size, lines.n, s.reverse);
  });
  return 4 * fours;
}
template <class T>
keel_rc RunCumsum(const keel_call* call) {
  const Cumsum& s = State<Cumsum>(call);
  const T* x = In<T>(call, 0);
  T* y = Out<T>(call, 0);
  const Lines lines(*call->in[0], s.axis);
  int64_t done = 0;
  if constexpr (std::is_same_v<T, float>) done = SumByFours(call, lines, s);
  return AlongLines<T>(call, lines, done, s.reverse, 3, [&](auto& sum, int64_t at, bool) {
    const auto with = sum + static_cast<Running<T>>(Widen(x[at]));
    Narrow(static_cast<Compute<T>>(s.exclusive ? sum : with), y[at]);
    sum = with;
  });
}
keel_rc PrepareCumsum(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  return Keep(launch, Cumsum{node.Int("axis"), node.Flag("exclusive"), node.Flag("reverse")},
              VisitAll(keel_dt_of(&x), []<class T>() -> Run { return RunCumsum<T>; }));
}

struct Recurrence {
  int64_t axis;
  bool reverse;
};
template <class T>
keel_rc RunRecurrence(const keel_call* call) {
  const Recurrence& s = State<Recurrence>(call);
  const T *a = In<T>(call, 0), *b = In<T>(call, 1);
  T* y = Out<T>(call, 0);
  return AlongLines<T>(call, {*call->in[0], s.axis}, 0, s.reverse, 4, [&](auto& now, int64_t at, bool first) {
    const auto add = static_cast<Running<T>>(Widen(b[at]));
    now = first ? add : static_cast<Running<T>>(Widen(a[at])) * now + add;
    Narrow(static_cast<Compute<T>>(now), y[at]);
  });
}
keel_rc PrepareRecurrence(const Node& node, keel_launch* launch) {
  const keel_tensor a = node.In(0);
  return Keep(launch, Recurrence{node.Int("axis"), node.Flag("reverse")},
              VisitAll(keel_dt_of(&a), []<class T>() -> Run { return RunRecurrence<T>; }));
}

constexpr keel_impl kImpls[] = {
    Impl("arg_max", "loop arg_max", Prepare<PrepareArg<true>>, KEEL_IMPL_ANY_DIMS),
    Impl("arg_min", "loop arg_min", Prepare<PrepareArg<false>>, KEEL_IMPL_ANY_DIMS),
    Impl("cumsum", "loop cumsum", Prepare<PrepareCumsum>, KEEL_IMPL_ANY_DIMS),
    Impl("linear_recurrence", "loop linear_recurrence", Prepare<PrepareRecurrence>, KEEL_IMPL_ANY_DIMS),
};

}  // namespace

Impls ArgImpls() { return kImpls; }

}  // namespace keel_cpu
