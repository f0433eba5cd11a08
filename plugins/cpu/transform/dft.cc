// dft.cc: the op dft, a line at a time in complex numbers of double (fft.h). A tensor is viewed as [outer, n,
// inner, parts].
#include <algorithm>

#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/transform/fft.h"

namespace keel_cpu {
namespace {

struct Dft {
  Fft fft;
  int64_t axis, lanes;
  bool inverse, halved;  // halved: only the frequencies up to half the length are given
};

template <class T>
struct Line {
  T* first;
  int64_t step, parts;
  Line(T* data, const keel_tensor& t, int64_t axis, int64_t line)
      : step(Product(t.shape + axis + 1, t.ndim - axis - 1)), parts(t.shape[t.ndim - 1]) {
    const int64_t inner = step / parts;
    first = data + line / inner * t.shape[axis] * step + line % inner * parts;
  }
};

// The line as n complex numbers, conjugated if inverse, filled with zeros.
template <class T>
void Load(const Line<const T>& from, int64_t given, const Dft& s, Pair* x) {
  const int64_t n = s.fft.length(), kept = std::min(given, s.halved ? n / 2 + 1 : n);
  for (int64_t j = 0; j < kept; j++) {
    const T* at = from.first + j * from.step;
    const double im = from.parts == 2 ? static_cast<double>(Widen(at[1])) : 0;
    x[j] = {static_cast<double>(Widen(at[0])), s.inverse ? -im : im};
  }
  std::fill(x + kept, x + n, Pair{0, 0});
  if (!s.halved) return;
  x[0].im = 0;
  for (int64_t j = 1; 2 * j < n; j++) x[n - j] = {x[j].re, -x[j].im};
  if (n % 2 == 0) x[n / 2].im = 0;
}

template <class T>
void Store(const Pair* x, const Dft& s, int64_t rows, const Line<T>& to) {
  const double scale = s.inverse ? static_cast<double>(s.fft.length()) : 1;
  for (int64_t j = 0; j < rows; j++) {
    T* at = to.first + j * to.step;
    Narrow(static_cast<Compute<T>>(x[j].re / scale), at[0]);
    if (to.parts == 2) Narrow(static_cast<Compute<T>>((s.inverse ? -x[j].im : x[j].im) / scale), at[1]);
  }
}

// Lane i of a few has memory of its own, and takes the lines i, i + lanes ...
template <class T>
keel_rc RunDft(const keel_call* call) {
  const Dft& s = State<Dft>(call);
  const keel_tensor &x = *call->in[0], &y = *call->out[0];
  const int64_t rows = y.shape[s.axis], per_line = rows * y.shape[y.ndim - 1];
  const int64_t lines = per_line ? call->count / per_line : 0;
  ParallelFor(call, s.lanes, lines / std::max<int64_t>(s.lanes, 1) * s.fft.room() * 16,
              [&](int64_t begin, int64_t end) {
                for (int64_t lane = begin; lane < end; lane++) {
                  Pair* own = static_cast<Pair*>(call->scratch) + lane * s.fft.room();
                  for (int64_t line = lane; line < lines && !Cancelled(call); line += s.lanes) {
                    Load(Line<const T>(In<T>(call, 0), x, s.axis, line), x.shape[s.axis], s, own);
                    s.fft.Run(call, own);
                    Store(own, s, rows, Line<T>(Out<T>(call, 0), y, s.axis, line));
                  }
                }
              });
  return Done(call);
}

keel_rc PrepareDft(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  const int64_t axis = node.Int("axis"), rows = y.shape[axis];
  const bool inverse = node.Flag("inverse"), onesided = node.Flag("onesided");
  const int64_t given = node.Int("length"), n = given >= 0            ? given
                                                : onesided && inverse ? rows
                                                                      : x.shape[axis];
  const int64_t lines = Product(y.shape, y.ndim) / (rows * y.shape[y.ndim - 1]);
  Dft state = {Fft(n), axis, std::min<int64_t>(Budget(), lines), inverse, onesided && inverse};
  const auto bytes = static_cast<uint64_t>(state.lanes * state.fft.room()) * sizeof(Pair);
  return Keep(launch, std::move(state),
              VisitFloats(keel_dt_of(&x), []<class T>() -> Run { return RunDft<T>; }), bytes);
}

constexpr keel_impl kImpls[] = {Impl("dft", "fast transform", Prepare<PrepareDft>)};

}  // namespace

Impls DftImpls() { return kImpls; }

}  // namespace keel_cpu
