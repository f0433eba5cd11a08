// loop.cc: convolution and its gradients by plain loops, for every float dtype and any number of image dims.
// A row of the last image dim is one vectorised loop per window cell (window.h). Sums are f32 for 16-bit
// floats and double for f64.
#include <algorithm>
#include <bit>

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {

Conv ReadConv(const Node& node, const keel_tensor& x, const keel_tensor& w, const keel_tensor& y) {
  const Dims stride = node.List("stride"), dil = node.List("dil"), lo = node.List("lo");
  Conv s;
  s.groups = node.Int("groups");
  s.n = x.shape[0];
  s.c = x.shape[1];
  s.o = y.shape[1];
  s.w.rank = x.ndim - 2;
  for (int d = 0; d < s.w.rank; d++) {
    s.w.image[d] = x.shape[d + 2];
    s.w.window[d] = w.shape[d + 2];
    s.w.out[d] = y.shape[d + 2];
    s.w.stride[d] = stride[d];
    s.w.dil[d] = dil[d];
    s.w.lo[d] = lo[d];
  }
  return s;
}

namespace {

constexpr int64_t kLong = 64 * 1024;  // elements between two checks for cancellation

// Sizes used by all three loops.
struct Sizes {
  int64_t pixels, places, cells, row, rows, in, out;
  explicit Sizes(const Conv& s)
      : pixels(s.w.Cells(s.w.image)),
        places(s.w.Cells(s.w.out)),
        cells(s.w.Cells(s.w.window)),
        row(s.w.out[s.w.rank - 1]),
        rows(Product(s.w.out, s.w.rank - 1)),
        in(s.PerGroupIn()),
        out(s.PerGroupOut()) {}
};

template <class T>
keel_rc RunConv(const keel_call* call) {
  using V = Compute<T>;
  const Conv& s = State<Conv>(call);
  if (call->count == 0) return KEEL_OK;
  const Sizes z(s);
  const T* x = In<T>(call, 0);
  const T* w = In<T>(call, 1);
  T* y = Out<T>(call, 0);
  ParallelFor(call, s.n * s.o * z.rows, z.row * z.in * z.cells, [&](int64_t begin, int64_t end) {
    std::vector<V> sums(static_cast<size_t>(z.row));
    for (int64_t r = begin; r < end; r++) {
      const int64_t plane = r / z.rows, image = plane / s.o, o = plane % s.o, group = o / z.out;
      int64_t place[kMaxImage];
      Unravel(r % z.rows, s.w.out, s.w.rank - 1, place);
      std::fill(sums.begin(), sums.end(), V{0});
      for (int64_t c = 0; c < z.in && !Cancelled(call); c++) {
        const T* channel = x + (image * s.c + group * z.in + c) * z.pixels;
        const T* window = w + (o * z.in + c) * z.cells;
        EachCell(s.w, place, [&](int64_t cell, int64_t at, int64_t first, int64_t m, int64_t step) {
          if (m > kLong && Cancelled(call)) return;
          const V k = Widen(window[cell]);
          V* sum = sums.data() + first;
          for (int64_t i = 0; i < m; i++) sum[i] += k * Widen(channel[at + i * step]);
        });
      }
      for (int64_t i = 0; i < z.row; i++) Narrow(sums[static_cast<size_t>(i)], y[r * z.row + i]);
    }
  });
  return Done(call);
}

template <class T>
keel_rc RunGradX(const keel_call* call) {
  using V = Compute<T>;
  const Conv& s = State<Conv>(call);
  if (call->count == 0) return KEEL_OK;
  const Sizes z(s);
  const T* dy = In<T>(call, 0);
  const T* w = In<T>(call, 1);
  T* dx = Out<T>(call, 0);
  ParallelFor(call, s.n * s.c, z.places * z.out * z.cells, [&](int64_t begin, int64_t end) {
    std::vector<V> sums(static_cast<size_t>(z.pixels));
    for (int64_t plane = begin; plane < end; plane++) {
      const int64_t image = plane / s.c, c = plane % s.c, group = c / z.in;
      std::fill(sums.begin(), sums.end(), V{0});
      for (int64_t unit = 0; unit < z.out * z.rows && !Cancelled(call); unit++) {
        const int64_t o = group * z.out + unit / z.rows;
        const T* from = dy + ((image * s.o + o) * z.rows + unit % z.rows) * z.row;
        const T* window = w + (o * z.in + c % z.in) * z.cells;
        int64_t place[kMaxImage];
        Unravel(unit % z.rows, s.w.out, s.w.rank - 1, place);
        EachCell(s.w, place, [&](int64_t cell, int64_t at, int64_t first, int64_t m, int64_t step) {
          if (m > kLong && Cancelled(call)) return;
          const V k = Widen(window[cell]);
          V* sum = sums.data() + at;
          for (int64_t i = 0; i < m; i++) sum[i * step] += k * Widen(from[first + i]);
        });
      }
      for (int64_t i = 0; i < z.pixels; i++) Narrow(sums[static_cast<size_t>(i)], dx[plane * z.pixels + i]);
    }
  });
  return Done(call);
}

template <class T>
keel_rc RunGradW(const keel_call* call) {
  using V = Compute<T>;
  const Conv& s = State<Conv>(call);
  if (call->count == 0) return KEEL_OK;
  const Sizes z(s);
  const T* dy = In<T>(call, 0);
  const T* x = In<T>(call, 1);
  T* dw = Out<T>(call, 0);
  ParallelFor(call, s.o * z.in, s.n * z.places * z.cells, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(z.cells));
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t o = unit / z.in, c = o / z.out * z.in + unit % z.in;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t r = 0; r < s.n * z.rows && !Cancelled(call); r++) {
        const int64_t image = r / z.rows;
        const T* from = dy + ((image * s.o + o) * z.rows + r % z.rows) * z.row;
        const T* channel = x + (image * s.c + c) * z.pixels;
        int64_t place[kMaxImage];
        Unravel(r % z.rows, s.w.out, s.w.rank - 1, place);
        EachCell(s.w, place, [&](int64_t cell, int64_t at, int64_t first, int64_t m, int64_t step) {
          if (m > kLong && Cancelled(call)) return;
          V sum = 0;
          for (int64_t i = 0; i < m; i++) sum += Widen(from[first + i]) * Widen(channel[at + i * step]);
          sums[static_cast<size_t>(cell)] += static_cast<double>(sum);
        });
      }
      for (int64_t i = 0; i < z.cells; i++)
        Narrow(static_cast<V>(sums[static_cast<size_t>(i)]), dw[unit * z.cells + i]);
    }
  });
  return Done(call);
}

keel_rc KeepConv(Conv s, Run run, keel_launch* launch) {
  Complete(&s.w);
  return Keep(launch, s, run);
}

constexpr keel_impl kImpls[] = {
    Impl("conv", "direct loops", Prepare<PrepareConvLoop>),
    Impl("conv_grad_x", "direct loops", Prepare<PrepareConvGradXLoop>),
    Impl("conv_grad_w", "direct loops", Prepare<PrepareConvGradWLoop>),
};

}  // namespace

keel_rc PrepareConvLoop(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), w = node.In(1), y = node.Out(0);
  return KeepConv(ReadConv(node, x, w, y),
                  VisitFloats(keel_dt_of(&y), []<class T>() -> Run { return Guard<RunConv<T>>; }), launch);
}
keel_rc PrepareConvGradXLoop(const Node& node, keel_launch* launch) {
  const keel_tensor dy = node.In(0), w = node.In(1), dx = node.Out(0);
  return KeepConv(ReadConv(node, dx, w, dy),
                  VisitFloats(keel_dt_of(&dx), []<class T>() -> Run { return Guard<RunGradX<T>>; }), launch);
}

keel_rc PrepareConvGradWLoop(const Node& node, keel_launch* launch) {
  const keel_tensor dy = node.In(0), x = node.In(1), dw = node.Out(0);
  return KeepConv(ReadConv(node, x, dw, dy),
                  VisitFloats(keel_dt_of(&dw), []<class T>() -> Run { return Guard<RunGradW<T>>; }), launch);
}

keel_rc LoopConvGradW(const keel_call* call, const Conv& s) {
  Conv complete = s;
  Complete(&complete.w);
  keel_call mine = *call;
  mine.state = &complete;
  return RunGradW<float>(&mine);
}

bool AllFinite(const float* x, int64_t n) {
  uint32_t greatest = 0;  // maximum exponent; all ones: infinite or NaN
  for (int64_t i = 0; i < n; i++) greatest = std::max(greatest, std::bit_cast<uint32_t>(x[i]) & 0x7f800000);
  return greatest != 0x7f800000;
}
bool HasNan(const float* x, int64_t n) {
  int some = 0;
  for (int64_t i = 0; i < n; i++) some |= x[i] != x[i];
  return some != 0;
}

Impls ConvLoopImpls() { return kImpls; }

}  // namespace keel_cpu
