// conv.cc: f32 convolution with oneDNN.
//
// A 1x1 window is a matrix product on plain images, unless the own products are faster (pointwise.h). All
// others are regions of one node, which choose oneDNN's layouts. Convolutions that oneDNN refuses run by
// loops.
#include "plugins/cpu/conv/conv.h"

#include <algorithm>

#include "plugins/cpu/conv/pointwise.h"
#include "plugins/cpu/onednn/cut.h"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {
namespace {

using Layout = dnnl::memory::desc;

struct Product {
  dnnl::matmul run;
  Layout pad;
};
// y[n] = w * x[n][c, pixels]: the weights are the left operand.
struct Pointwise {
  Layout x, w, y;
  uint64_t scratch = 0;
  std::unique_ptr<PerThreads<Product>> products;

  Product Make() const {
    const dnnl::matmul::primitive_desc d(Engine(), w, x, y, UserScratch());
    return {dnnl::matmul(d), d.scratchpad_desc()};
  }
};

keel_rc RunPointwise(const keel_call* call) {
  const Pointwise& s = *State<std::unique_ptr<Pointwise>>(call);
  const Team team(call);
  const Product& p = s.products->For(team.Size());
  Scratch scratch(call, s.scratch, p.pad.get_size());
  p.run.execute(Stream(), {{DNNL_ARG_SRC, At(s.w, keel_ptr(call->in[1]))},
                           {DNNL_ARG_WEIGHTS, At(s.x, keel_ptr(call->in[0]))},
                           {DNNL_ARG_DST, At(s.y, keel_ptr(call->out[0]))},
                           {DNNL_ARG_SCRATCHPAD, At(p.pad, scratch.Take(p.pad.get_size()))}});
  Stream().wait();
  return KEEL_OK;
}

bool IsPointwise(const Conv& s, const Geometry& g) {
  bool yes = s.groups == 1;
  for (int d = 0; d < s.w.rank; d++)
    yes &= s.w.window[d] == 1 && s.w.stride[d] == 1 && s.w.lo[d] == 0 && g.hi[static_cast<size_t>(d)] == 0;
  return yes;
}

keel_rc PreparePointwise(const Conv& conv, keel_launch* launch) {
  auto s = std::make_unique<Pointwise>();
  const int64_t pixels = conv.w.Cells(conv.w.image);
  s->x = Plain({conv.n, conv.c, pixels});
  s->w = Plain({1, conv.o, conv.c});
  s->y = Plain({conv.n, conv.o, pixels});
  s->products = std::make_unique<PerThreads<Product>>([raw = s.get()] { return raw->Make(); });
  s->scratch = Aligned(s->products->First().pad.get_size());
  const uint64_t bytes = s->scratch;
  return Keep(launch, std::move(s), Guard<RunPointwise>, bytes);
}

keel_rc PrepareConv(const Node& node, keel_launch* launch) {
  const Conv s = ReadConv(node, node.In(0), node.In(1), node.Out(0));
  const Geometry g = Describe(s);
  // As a node of a region, oneDNN has already refused it.
  if (!g.fits || IsInner(node)) {
    Explain(launch, "own loops: oneDNN does not serve it");
    return PrepareConvLoop(node, launch);
  }
  const bool own =
      WayOf({s.n, s.c, s.o, s.w.Cells(s.w.out)}, node.In(1).data != nullptr) != PointwiseWay::kOther;
  if (own || s.Work() > PartWork() || !IsPointwise(s, g)) return PrepareSingleOp(node, launch);
  try {
    Explain(launch, "oneDNN product: 1x1 windows of plain images");
    return PreparePointwise(s, launch);
  } catch (const dnnl::error&) {
    Explain(launch, "own loops: oneDNN does not serve it");
    return PrepareConvLoop(node, launch);
  }
}
constexpr keel_impl kImpls[] = {
    Impl("conv", "oneDNN convolution", Prepare<PrepareConv>, KEEL_IMPL_THREAD_BITS, "T=f32", 1),
};

}  // namespace

Geometry Describe(const Conv& s) {
  Geometry g = {s.XDims(), s.WDims(), s.YDims(), {}, {}, {}, {}};
  if (s.groups > 1) {
    g.w[0] = s.PerGroupOut();
    g.w.insert(g.w.begin(), s.groups);
  }
  for (int d = 0; d < s.w.rank; d++) {
    const int64_t reach = s.w.Reach(d);
    g.stride.push_back(s.w.stride[d]);
    g.dil.push_back(s.w.dil[d] - 1);
    g.lo.push_back(s.w.lo[d]);
    g.hi.push_back((s.w.out[d] - 1) * s.w.stride[d] + reach - s.w.image[d] - s.w.lo[d]);
    // Pixels beyond the last window count as negative padding.
    g.fits &= g.hi.back() > -s.w.stride[d] && s.w.lo[d] < reach && g.hi.back() < reach;
  }
  g.fits &= s.w.rank >= 1 && s.w.rank <= 3;
  for (const Dims* dims : {&g.x, &g.w, &g.y})
    for (int64_t d : *dims) g.fits &= d > 0;
  return g;
}

bool IsPadded(const Geometry& g) {
  const auto some = [](const Dims& d) {
    return std::any_of(d.begin(), d.end(), [](int64_t n) { return n > 0; });
  };
  return some(g.lo) || some(g.hi);
}

Impls ConvImpls() { return kImpls; }

}  // namespace keel_cpu
