// conv_grad.cc: gradients of convolution in a region, on images in their current layout, split by images if
// they take long. Also the sum over all dims but the channels (a bias gradient).
#include <algorithm>

#include "plugins/cpu/conv/grad.h"
#include "plugins/cpu/regions/invalid.h"
#include "plugins/cpu/regions/ops.h"

namespace keel_cpu {
namespace {

using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

// Layouts of x and y and of the weights: any at first, then those chosen for the whole.
struct Layouts {
  Layout x, w, y;
};
Layouts LayoutsOf(const BackwardData::primitive_desc& d) {
  return {d.diff_src_desc(), d.weights_desc(), d.diff_dst_desc()};
}
Layouts LayoutsOf(const BackwardWeights::primitive_desc& d) {
  return {d.src_desc(), d.diff_weights_desc(), d.diff_dst_desc()};
}
template <class P>
typename P::primitive_desc Make(const Geometry& g, const Layouts& l) {
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  return {Engine(), direct, l.x, l.w, l.y, g.stride, g.dil, g.lo, g.hi, Hint(g), UserScratch()};
}

// Channels last if the region keeps images so and oneDNN has optimised code for it, else oneDNN's choice.
template <class P>
std::optional<typename P::primitive_desc> Choose(const Builder& b, const Geometry& g) {
  const bool grouped = g.w.size() > g.x.size();
  for (const bool last : {true, false}) {
    if (last && !b.channels_last) continue;
    try {
      const auto layout = [&](const Dims& d) { return last ? ChannelsLast(d) : AnyLayout(d); };
      auto d = Make<P>(g, {layout(g.x), AnyLayout(g.w), layout(g.y)});
      if (last || grouped ? IsDirect(d) : IsOptimized(d)) return d;
    } catch (const dnnl::error&) {
    }
  }
  return {};
}

// A range of the images, computed in the layouts of the whole.
template <class P>
struct Part {
  typename P::primitive_desc run;
  Layouts layouts;
  uint64_t x_at = 0, y_at = 0;
};
template <class P>
std::vector<Part<P>> PartsFor(const std::vector<Box>& boxes, const Geometry& whole, const Layouts& layouts) {
  std::vector<Part<P>> parts;
  for (const Box& box : boxes) {
    Part<P> p;
    Geometry g = whole;
    g.x[0] = g.y[0] = box.size[0];
    p.layouts = {PartOf(layouts.x, box, 1, &p.x_at), layouts.w, PartOf(layouts.y, box, 1, &p.y_at)};
    p.run = Make<P>(g, p.layouts);
    if (!IsOptimized(p.run))
      throw dnnl::error(dnnl_unimplemented, "oneDNN has only reference code for a part");
    parts.push_back(std::move(p));
  }
  return parts;
}

// False: the plugin's own impl computes it; it can also split an image.
bool UsesOneDnn(const BodyValue& made, const Conv& s, const Geometry& g) {
  return made.dtype == KEEL_F32 && g.fits && s.Work() >= kSmallGrad && GradWork(s) / s.n <= PartWork();
}

struct Sum {
  int64_t n;
};
keel_rc RunAddTo(const keel_call* call) {
  float* sum = Out<float>(call, 0);
  const float* x = In<float>(call, 0);
  ParallelFor(call, State<Sum>(call).n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) sum[i] += x[i];
  });
  return Done(call);
}
void EmitAddTo(Builder& b, uint32_t v, const Layout& layout, int x, int sum) {
  auto own = std::make_unique<OwnLaunch>();
  Keep(&own->launch, Sum{static_cast<int64_t>(layout.get_size() / sizeof(float))}, Guard<RunAddTo>);
  b.EmitOwn(std::move(own), {v}, {v}, {x, sum});
}

// Operands dy and x; the result is present already.
keel_rc RunRepairW(const keel_call* call) {
  const bool spoilt = HasNan(Out<float>(call, 0), call->count);
  return spoilt ? LoopConvGradW(call, State<Conv>(call)) : KEEL_OK;
}
keel_rc RunCheckNan(const keel_call* call) {
  if (HasNan(In<float>(call, 0), State<Sum>(call).n)) RaiseInvalid();
  return KEEL_OK;
}
// With padding alone a NaN may arise from the zeros: a careful program then recomputes the gradient by loops.
void EmitRepairW(Builder& b, const BodyNode& n, const Conv& s, int dw) {
  auto own = std::make_unique<OwnLaunch>();
  if (b.Allows({.loses_nan = true})) {
    own->reports_nan_loss = true;
    Keep(&own->launch, Sum{b.Value(n.out[0]).Count()}, Guard<RunCheckNan>);
    return b.EmitOwn(std::move(own), n.out, {}, {dw});
  }
  Keep(&own->launch, s, Guard<RunRepairW>);
  b.EmitOwn(std::move(own), n.in, n.out,
            {b.BufferIn(n.in[0], b.PlainOf(n.in[0])), b.BufferIn(n.in[1], b.PlainOf(n.in[1])), dw});
}

// Shares of the images run concurrently, each into weights of its own, which are added in a fixed order.
bool EmitShares(Builder& b, const BodyNode& n, const Conv& s, const Geometry& g, const Layouts& l) {
  const Shares shares = SharesOf(s);
  if (shares.at_once == 1) return false;
  const int threads = keel_threads_get();
  std::vector<Part<BackwardWeights>> parts;
  SetThreads(1);
  try {
    parts = PartsFor<BackwardWeights>(shares.images, g, l);
  } catch (const dnnl::error&) {
  }
  SetThreads(threads);
  if (parts.empty()) return false;
  const Layout plain = Plain(g.w);
  const int dy = b.BufferIn(n.in[0], l.y), x = b.BufferIn(n.in[1], l.x);
  const int dw = b.ResultBuffer(n.out[0], b.PlainOf(n.out[0]));
  const int sum = l.w == plain ? dw : b.Scratch(l.w.get_size());
  std::vector<int> made(static_cast<size_t>(shares.at_once));
  for (int& m : made) m = b.Scratch(l.w.get_size());
  for (size_t first = 0; first < parts.size(); first += made.size()) {
    const size_t end = std::min(parts.size(), first + made.size());
    const auto of = [&](size_t i) { return i == 0 ? sum : made[i - first]; };
    b.EmitConcurrent([&] {
      for (size_t i = first; i < end; i++)
        b.Emit<BackwardWeights>(parts[i].run, {{DNNL_ARG_DIFF_DST, parts[i].layouts.y, dy, parts[i].y_at},
                                               {DNNL_ARG_SRC, parts[i].layouts.x, x, parts[i].x_at},
                                               {DNNL_ARG_DIFF_WEIGHTS, l.w, of(i)}});
    });
    for (size_t i = std::max<size_t>(1, first); i < end; i++) EmitAddTo(b, n.out[0], l.w, of(i), sum);
  }
  if (sum != dw)
    b.Emit(dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), l.w, Engine(), plain, UserScratch())),
           {{DNNL_ARG_FROM, l.w, sum}, {DNNL_ARG_TO, plain, dw}});
  if (IsPadded(g)) EmitRepairW(b, n, s, dw);
  return true;
}

}  // namespace

bool EmitConvGradX(Builder& b, const BodyNode& n) {
  const Conv s = ReadConv(n.node, n.node.Out(0), n.node.In(1), n.node.In(0));
  const Geometry g = Describe(s);
  if (!UsesOneDnn(b.Value(n.out[0]), s, g)) return false;
  const auto d = Choose<BackwardData>(b, g);
  if (!d) return false;
  const Layouts l = LayoutsOf(*d);
  const auto parts = PartsFor<BackwardData>(Boxes({s.n}, GradWork(s)), g, l);
  const int weights = Weights(b, n, {}, Plain(g.w), l.w, {1, 1});
  const int dy = b.BufferIn(n.in[0], l.y), dx = b.ResultBuffer(n.out[0], l.x);
  for (const auto& p : parts)
    b.Emit<BackwardData>(p.run, {{DNNL_ARG_DIFF_DST, p.layouts.y, dy, p.y_at},
                                 {DNNL_ARG_WEIGHTS, l.w, weights},
                                 {DNNL_ARG_DIFF_SRC, p.layouts.x, dx, p.x_at}});
  return true;
}

// Parts are added in a fixed order.
bool EmitConvGradW(Builder& b, const BodyNode& n) {
  const Conv s = ReadConv(n.node, n.node.In(1), n.node.Out(0), n.node.In(0));
  const Geometry g = Describe(s);
  if (!UsesOneDnn(b.Value(n.out[0]), s, g)) return false;
  const auto d = Choose<BackwardWeights>(b, g);
  if (!d) return false;
  const Layouts l = LayoutsOf(*d);
  if (EmitShares(b, n, s, g, l)) return true;
  const auto parts = PartsFor<BackwardWeights>(Boxes({s.n}, GradWork(s)), g, l);
  const Layout plain = Plain(g.w);
  const int dy = b.BufferIn(n.in[0], l.y), x = b.BufferIn(n.in[1], l.x);
  const int dw = b.ResultBuffer(n.out[0], b.PlainOf(n.out[0]));
  const int sum = l.w == plain ? dw : b.Scratch(l.w.get_size());
  const int share = parts.size() > 1 ? b.Scratch(l.w.get_size()) : -1;
  for (size_t i = 0; i < parts.size(); i++) {
    const auto& p = parts[i];
    b.Emit<BackwardWeights>(p.run, {{DNNL_ARG_DIFF_DST, p.layouts.y, dy, p.y_at},
                                    {DNNL_ARG_SRC, p.layouts.x, x, p.x_at},
                                    {DNNL_ARG_DIFF_WEIGHTS, l.w, i == 0 ? sum : share}});
    if (i > 0) EmitAddTo(b, n.out[0], l.w, share, sum);
  }
  if (sum != dw)
    b.Emit(dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), l.w, Engine(), plain, UserScratch())),
           {{DNNL_ARG_FROM, l.w, sum}, {DNNL_ARG_TO, plain, dw}});
  if (IsPadded(g)) EmitRepairW(b, n, s, dw);
  return true;
}

bool IsChannelSum(const Body& body, const BodyNode& n) {
  if (n.op != "reduce_sum" && n.op != "sum_to") return false;  // others may lack operands or results
  const BodyValue &x = body.values[n.in[0]], &y = body.values[n.out[0]];
  const size_t rank = x.dims.size();
  if (x.dtype != KEEL_F32 || rank < 3 || rank > 5) return false;
  if (n.op == "reduce_sum") {
    Dims rest;
    for (size_t d = 0; d < rank; d++)
      if (d != 1) rest.push_back(static_cast<int64_t>(d));
    return n.node.List("axes") == rest;
  }
  if (y.dims.size() + 1 < rank || x.dims[1] < 1 || y.Count() != x.dims[1]) return false;
  return y.dims[y.dims.size() + 1 - rank] == x.dims[1];
}

// With channels contiguous this is a column sum of a matrix.
bool EmitChannelSum(Builder& b, const BodyNode& n) {
  if (!IsChannelSum(b.body, n)) return false;
  const BodyValue& x = b.Value(n.in[0]);
  if (x.Count() > 0 && n.op == "reduce_sum" && !IsChannelsLast(b.LayoutOf(n.in[0]))) return false;
  const Layout layout = x.Count() > 0 ? ChannelsLast(x.dims) : b.PlainOf(n.in[0]);
  auto own = std::make_unique<OwnLaunch>();
  KeepColumnSums(x.Count() / std::max<int64_t>(1, x.dims[1]), x.dims[1], &own->launch);
  b.EmitOwn(std::move(own), n.in, n.out,
            {b.BufferIn(n.in[0], layout), b.ResultBuffer(n.out[0], b.PlainOf(n.out[0]))});
  return true;
}

}  // namespace keel_cpu
