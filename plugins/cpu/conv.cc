// conv.cc: f32 convolution by oneDNN.
//
// oneDNN may choose the layouts of all operands. Constant weights are packed into its layout once;
// images come and go in plain layout, so a run may reorder before and after the primitive. A window of
// one cell is a matrix product, which needs no reorder. What oneDNN refuses goes to the loops.
#include "conv.h"

#include "body.h"
#include "cut.h"

namespace keel_cpu {
namespace {

using Layout = dnnl::memory::desc;

struct Primitive {
  dnnl::primitive run;
  Layout in, weights, out, scratch;  // as the primitive wants them
  dnnl::reorder enter, pack, leave;  // empty where the layout is plain already
  uint64_t ScratchBytes() const {
    return Aligned(scratch.get_size()) + (enter ? Aligned(in.get_size()) : 0) +
           (pack ? Aligned(weights.get_size()) : 0) + (leave ? Aligned(out.get_size()) : 0);
  }
};

struct BigConv {
  int in_arg, weights_arg, out_arg;
  Layout in, weights, out;  // plain
  Layout wanted;            // of the weights: any, or once they are packed what oneDNN chose
  Packed constant;
  uint64_t scratch = 0;
  std::function<Primitive(const BigConv&)> make;
  std::unique_ptr<PerThreads<Primitive>> primitives;
};

dnnl::reorder Reorder(const Layout& from, const Layout& to) {
  if (from == to) return {};
  return dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to, UserScratch()));
}
void Finish(const BigConv& s, Primitive* p) {
  p->enter = Reorder(s.in, p->in);
  p->leave = Reorder(p->out, s.out);
  p->pack = s.constant.data != nullptr ? dnnl::reorder() : Reorder(s.weights, p->weights);
}

void Move(const dnnl::reorder& r, const Layout& from, const void* source, const Layout& to, void* target) {
  dnnl::reorder copy = r;
  copy.execute(Stream(), {{DNNL_ARG_FROM, At(from, source)}, {DNNL_ARG_TO, At(to, target)}});
}

keel_rc RunBig(const keel_call* call) {
  const BigConv& s = *State<std::unique_ptr<BigConv>>(call);
  if (call->count == 0) return KEEL_OK;
  const Team team(call);
  const Primitive& p = s.primitives->For(team.Size());
  Scratch scratch(call, s.scratch, p.ScratchBytes());
  const void* image = keel_ptr(call->in[0]);
  const void* weights = s.constant.data != nullptr ? s.constant.data : keel_ptr(call->in[1]);
  void* result = keel_ptr(call->out[0]);
  void* work = scratch.Take(p.scratch.get_size());
  if (p.enter) {
    void* to = scratch.Take(p.in.get_size());
    Move(p.enter, s.in, image, p.in, to);
    image = to;
  }
  if (p.pack) {
    void* to = scratch.Take(p.weights.get_size());
    Move(p.pack, s.weights, weights, p.weights, to);
    weights = to;
  }
  void* made = p.leave ? scratch.Take(p.out.get_size()) : result;
  p.run.execute(Stream(), {{s.in_arg, At(p.in, image)},
                           {s.weights_arg, At(p.weights, weights)},
                           {s.out_arg, At(p.out, made)},
                           {DNNL_ARG_SCRATCHPAD, At(p.scratch, work)}});
  if (p.leave) Move(p.leave, p.out, made, s.out, result);
  Stream().wait();
  return KEEL_OK;
}

Primitive MakeForward(const BigConv& s, const Geometry& g) {
  const dnnl::convolution_forward::primitive_desc d(
      Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, AnyLayout(g.x),
      s.wanted, AnyLayout(g.y), g.stride, g.dil, g.lo, g.hi, UserScratch());
  Primitive p = {dnnl::convolution_forward(d),
                 d.src_desc(),
                 d.weights_desc(),
                 d.dst_desc(),
                 d.scratchpad_desc(),
                 {},
                 {},
                 {}};
  Finish(s, &p);
  return p;
}
// y[n] = w[o, c] * x[n][c, pixels]: the weights are the left operand.
Primitive MakePointwise(const BigConv& s) {
  const dnnl::matmul::primitive_desc d(Engine(), s.weights, s.in, s.out, UserScratch());
  return {dnnl::matmul(d), s.in, s.weights, s.out, d.scratchpad_desc(), {}, {}, {}};
}

bool IsPointwise(const Conv& s, const Geometry& g) {
  bool yes = s.groups == 1;
  for (int d = 0; d < s.w.rank; d++)
    yes &= s.w.window[d] == 1 && s.w.stride[d] == 1 && s.w.lo[d] == 0 && g.hi[static_cast<size_t>(d)] == 0;
  return yes;
}

// Makes the first primitive, packs constant weights, and fixes their layout for all later primitives.
keel_rc KeepBig(std::unique_ptr<BigConv> s, const keel_tensor& weights, keel_launch* launch) {
  SetThreads(Budget());
  if (weights.data != nullptr) {
    const Primitive probe = s->make(*s);
    s->constant = Pack(s->weights, keel_ptr(&weights), probe.weights);
    s->wanted = probe.weights;
  }
  s->primitives = std::make_unique<PerThreads<Primitive>>([raw = s.get()] { return raw->make(*raw); });
  s->scratch = s->primitives->First().ScratchBytes();
  const uint64_t bytes = s->scratch;
  return Keep(launch, std::move(s), Guard<RunBig>, bytes);
}

keel_rc PreparePointwise(const Conv& conv, const keel_tensor& w, keel_launch* launch) {
  auto s = std::make_unique<BigConv>();
  const int64_t pixels = conv.w.Cells(conv.w.image);
  s->in_arg = DNNL_ARG_WEIGHTS;
  s->weights_arg = DNNL_ARG_SRC;
  s->out_arg = DNNL_ARG_DST;
  s->in = Plain({conv.n, conv.c, pixels});
  s->weights = s->wanted = Plain({1, conv.o, conv.c});
  s->out = Plain({conv.n, conv.o, pixels});
  s->make = MakePointwise;
  return KeepBig(std::move(s), w, launch);
}

keel_rc PrepareBig(const Geometry& g, const keel_tensor& w, keel_launch* launch) {
  auto s = std::make_unique<BigConv>();
  s->in_arg = DNNL_ARG_SRC;
  s->weights_arg = DNNL_ARG_WEIGHTS;
  s->out_arg = DNNL_ARG_DST;
  s->in = Plain(g.x);
  s->out = Plain(g.y);
  s->weights = Plain(g.w);
  s->wanted = AnyLayout(g.w);
  s->make = [g](const BigConv& b) { return MakeForward(b, g); };
  return KeepBig(std::move(s), w, launch);
}

keel_rc PrepareConv(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), w = node.In(1), y = node.Out(0);
  const Conv s = ReadConv(node, x, w, y);
  const Geometry g = Describe(s);
  if (!g.fits) return PrepareConvLoop(node, launch);
  if (s.Work() > PartWork() && !IsInner(node)) return PrepareAlone(node, launch);
  try {
    return IsPointwise(s, g) ? PreparePointwise(s, w, launch) : PrepareBig(g, w, launch);
  } catch (const dnnl::error&) {
    return PrepareConvLoop(node, launch);
  }
}
constexpr keel_impl kImpls[] = {
    Impl("conv", "oneDNN convolution", Prepare<PrepareConv>, 0, "T=f32", 1),
};

}  // namespace

Geometry Describe(const Conv& s) {
  Geometry g = {s.XDims(), s.WDims(), s.YDims(), {}, {}, {}, {}};
  if (s.groups > 1) {
    g.w[0] = s.PerGroupOut();
    g.w.insert(g.w.begin(), s.groups);
  }
  for (int d = 0; d < s.w.rank; d++) {
    const int64_t reach = s.w.dil[d] * (s.w.window[d] - 1) + 1;
    g.stride.push_back(s.w.stride[d]);
    g.dil.push_back(s.w.dil[d] - 1);
    g.lo.push_back(s.w.lo[d]);
    g.hi.push_back((s.w.out[d] - 1) * s.w.stride[d] + reach - s.w.image[d] - s.w.lo[d]);
    // What the last window leaves of the image shows as negative padding.
    g.fits &= g.hi.back() > -s.w.stride[d] && s.w.lo[d] < reach && g.hi.back() < reach;
  }
  g.fits &= s.w.rank >= 1 && s.w.rank <= 3;
  for (const Dims* dims : {&g.x, &g.w, &g.y})
    for (int64_t d : *dims) g.fits &= d > 0;
  return g;
}

Impls ConvImpls() { return kImpls; }

}  // namespace keel_cpu
