// grad.cc: gradients of f32 convolution with oneDNN, in parts between which a run can be cancelled.
//
// conv_grad_x is split by images, then by rows of the image; conv_grad_w by images and rows of dy, whose
// results are added, or by output channels if the weights are larger than the images. A part copies its data
// into oneDNN's layouts, so all copies together cost the same as for the whole.
#include <numeric>
#include <optional>

#include "plugins/cpu/conv/grad.h"
#include "plugins/cpu/onednn/cut.h"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {
namespace {

using Layout = dnnl::memory::desc;

struct Operand {
  int arg = 0;
  Layout plain, wanted;  // of the part; plain: a view of the whole
  uint64_t at = 0;       // byte offset in the whole
  dnnl::reorder move;    // empty if it can be used in place
};
struct Part {
  dnnl::primitive run;
  Operand in[2], out;
  Layout pad;
  bool adds = false;  // to the results of earlier parts
  GangNeeds gang = {};
};
struct Plan {
  std::vector<Part> parts;
  // Workspace: operands 0 and 1, the result as computed and in plain layout, oneDNN's scratchpad.
  uint64_t sizes[5] = {};
  bool packed = true;  // false: constant weights stay plain
  uint64_t Total() const { return std::accumulate(sizes, sizes + 5, uint64_t{0}); }
};
struct Grad {
  Layout weights;   // of conv_grad_x: any, or oneDNN's choice once they are packed
  Packed constant;  // weights
  std::unique_ptr<PerThreads<Plan>> plans;
  uint64_t scratch = 0;
  std::optional<Conv> checked;  // of conv_grad_w with padding: recomputed by loops if the result has a NaN
};
// Creates the parts of a convolution; weights: see Grad.
using Make = std::vector<Part> (*)(const Conv& s, const Geometry& whole, const Layout& weights);

Operand OperandOf(int arg, const Layout& whole, const Box& box, const Layout& wanted, bool leaves) {
  Operand o = {arg, {}, wanted, 0, {}};
  o.plain = PartOf(whole, box, box.size.size(), &o.at);
  if (o.plain == wanted) return o;
  const Layout &from = leaves ? wanted : o.plain, &to = leaves ? o.plain : wanted;
  o.move = dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to, UserScratch()));
  return o;
}
void Execute(const dnnl::primitive& p, const std::unordered_map<int, dnnl::memory>& args) {
  p.execute(Stream(), args);
}

// Operand i of a part in the primitive's layout. Data that an earlier part moved is reused.
const void* MoveOperand(const keel_call* call, const Part& p, const Part* before, int i, void* scratch) {
  const Operand& o = p.in[i];
  const char* from = In<char>(call, i) + o.at;
  if (!o.move) return from;
  const Operand* old = before != nullptr ? &before->in[i] : nullptr;
  if (old == nullptr || !old->move || old->at != o.at || old->plain != o.plain || old->wanted != o.wanted)
    Execute(o.move, {{DNNL_ARG_FROM, At(o.plain, from)}, {DNNL_ARG_TO, At(o.wanted, scratch)}});
  return scratch;
}

void AddTo(const keel_call* call, float* sum, const float* x, int64_t n) {
  ParallelFor(call, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) sum[i] += x[i];
  });
}

keel_rc RunGrad(const keel_call* call) {
  const Grad& g = *State<std::unique_ptr<Grad>>(call);
  if (call->count == 0) return KEEL_OK;
  const Team team(call);
  const Plan& plan = g.plans->For(team.Size());
  Scratch scratch(call, g.scratch, plan.Total());
  void* workspace[5];
  for (int i = 0; i < 5; i++) workspace[i] = scratch.Take(plan.sizes[i]);
  const Part* before = nullptr;
  for (const Part& p : plan.parts) {
    if (Cancelled(call)) return KEEL_CANCELLED;
    const void* packed = plan.packed ? g.constant.data : nullptr;
    const void* in[2] = {MoveOperand(call, p, before, 0, workspace[0]),
                         packed != nullptr ? packed : MoveOperand(call, p, before, 1, workspace[1])};
    char* result = Out<char>(call, 0) + p.out.at;
    void* plain = p.adds ? workspace[3] : result;
    void* made = p.out.move ? workspace[2] : plain;
    const GangScope scope(p.gang);
    Execute(p.run, {{p.in[0].arg, At(p.in[0].wanted, in[0])},
                    {p.in[1].arg, At(p.in[1].wanted, in[1])},
                    {p.out.arg, At(p.out.wanted, made)},
                    {DNNL_ARG_SCRATCHPAD, At(p.pad, workspace[4])}});
    if (p.out.move)
      Execute(p.out.move, {{DNNL_ARG_FROM, At(p.out.wanted, made)}, {DNNL_ARG_TO, At(p.out.plain, plain)}});
    Stream().wait();
    if (p.adds)
      AddTo(call, reinterpret_cast<float*>(result), static_cast<const float*>(plain),
            static_cast<int64_t>(p.out.plain.get_size() / sizeof(float)));
    before = &p;
  }
  if (g.checked && HasNan(Out<float>(call, 0), call->count)) return LoopConvGradW(call, *g.checked);
  return Done(call);
}

// Output positions [from, to) of the first image dim, and the image cells [lo, hi) that they see. Narrowed
// returns the geometry of that part, for `channels` of y.
struct Strip {
  int64_t lo, hi, from, to;
};
Geometry Narrowed(const Conv& s, int64_t images, int64_t channels, const Strip& strip) {
  Geometry g = Describe(s);
  const int64_t reach = s.w.Reach(0), start = strip.from * s.w.stride[0] - s.w.lo[0];
  g.x[0] = g.y[0] = images;
  g.y[1] = channels;
  if (s.groups == 1) g.w[0] = channels;
  g.x[2] = strip.hi - strip.lo;
  g.y[2] = strip.to - strip.from;
  g.lo[0] = strip.lo - start;
  g.hi[0] = (strip.to - 1) * s.w.stride[0] - s.w.lo[0] + reach - strip.hi;
  return g;
}
template <class Desc>
void Check(const Desc& d, bool grouped) {
  if (grouped ? !IsDirect(d) : !IsOptimized(d))
    throw dnnl::error(dnnl_unimplemented, "oneDNN has only reference code");
}

// The part for rows [at, at + n) of the image.
Part PartOfX(const Conv& s, const Geometry& whole, const Layout& weights, const Box& box) {
  const int64_t at = box.lo[1], end = at + box.size[1], stride = s.w.stride[0];
  const int64_t reach = s.w.Reach(0);
  // Windows from the first that ends after `at` to the last that begins before `end`.
  const int64_t before = at + s.w.lo[0] - reach, behind = end - 1 + s.w.lo[0];
  const int64_t from = before < 0 ? 0 : before / stride + 1, to = std::min(s.w.out[0], behind / stride + 1);
  if (from >= to) throw dnnl::error(dnnl_unimplemented, "rows that no window sees");
  const Geometry g = Narrowed(s, box.size[0], s.o, {at, end, from, to});
  const dnnl::convolution_backward_data::primitive_desc d(Engine(), dnnl::algorithm::convolution_direct,
                                                          AnyLayout(g.x), weights, AnyLayout(g.y), g.stride,
                                                          g.dil, g.lo, g.hi, Hint(g), UserScratch());
  Check(d, s.groups > 1);
  const Box dy = {{box.lo[0], 0, from}, {box.size[0], s.o, to - from}};
  const Box dx = {{box.lo[0], 0, at}, {box.size[0], s.c, box.size[1]}};
  const Box all = {{0}, {whole.w[0]}};
  return {dnnl::convolution_backward_data(d),
          {OperandOf(DNNL_ARG_DIFF_DST, Plain(whole.y), dy, d.diff_dst_desc(), false),
           OperandOf(DNNL_ARG_WEIGHTS, Plain(whole.w), all, d.weights_desc(), false)},
          OperandOf(DNNL_ARG_DIFF_SRC, Plain(whole.x), dx, d.diff_src_desc(), true),
          d.scratchpad_desc()};
}

// The gradient of w from a box of channels, images and rows of y.
Part PartOfW(const Conv& s, const Geometry& whole, const Box& box) {
  const int64_t from = box.lo[2], to = from + box.size[2], stride = s.w.stride[0];
  const int64_t reach = s.w.Reach(0), start = from * stride - s.w.lo[0];
  const int64_t lo = std::max<int64_t>(0, start);
  const int64_t hi = std::min(s.w.image[0], (to - 1) * stride - s.w.lo[0] + reach);
  if (lo >= hi) throw dnnl::error(dnnl_unimplemented, "windows that see no row");
  const Geometry g = Narrowed(s, box.size[1], box.size[0], {lo, hi, from, to});
  const dnnl::convolution_backward_weights::primitive_desc d(
      Engine(), dnnl::algorithm::convolution_direct, AnyLayout(g.x), AnyLayout(g.w), AnyLayout(g.y), g.stride,
      g.dil, g.lo, g.hi, Hint(g), UserScratch());
  Check(d, s.groups > 1);
  const Box dy = {{box.lo[1], box.lo[0], from}, {box.size[1], box.size[0], to - from}};
  const Box x = {{box.lo[1], 0, lo}, {box.size[1], s.c, hi - lo}};
  const Box dw = {{s.groups == 1 ? box.lo[0] : 0}, {g.w[0]}};
  return {dnnl::convolution_backward_weights(d),
          {OperandOf(DNNL_ARG_DIFF_DST, Plain(whole.y), dy, d.diff_dst_desc(), false),
           OperandOf(DNNL_ARG_SRC, Plain(whole.x), x, d.src_desc(), false)},
          OperandOf(DNNL_ARG_DIFF_WEIGHTS, Plain(whole.w), dw, d.diff_weights_desc(), true),
          d.scratchpad_desc(),
          box.lo[1] + box.lo[2] > 0};
}

using Dim = std::pair<int64_t, size_t>;  // its size, and its index in PartOfW's boxes
std::vector<Part> MakeW(const Conv& s, const Geometry& whole, const Layout&) {
  const auto size = [](const Dims& d) { return Product(d.data(), static_cast<int64_t>(d.size())); };
  const bool by_channels = s.groups == 1 && size(whole.w) > size(whole.x);
  const std::vector<Dim> order = by_channels ? std::vector<Dim>{{s.o, 0}, {s.n, 1}, {s.w.out[0], 2}}
                                             : std::vector<Dim>{{s.n, 1}, {s.w.out[0], 2}};
  Dims dims;
  for (const Dim& d : order) dims.push_back(d.first);
  std::vector<Part> parts;
  for (const Box& cut : Boxes(dims, GradWork(s))) {
    Box box = {{0, 0, 0}, {s.o, s.n, s.w.out[0]}};
    for (size_t i = 0; i < order.size(); i++) {
      box.lo[order[i].second] = cut.lo[i];
      box.size[order[i].second] = cut.size[i];
    }
    parts.push_back(PartOfW(s, whole, box));
  }
  return parts;
}
std::vector<Part> MakeX(const Conv& s, const Geometry& whole, const Layout& weights) {
  std::vector<Part> parts;
  for (const Box& box : Boxes({s.n, s.w.image[0]}, GradWork(s)))
    parts.push_back(PartOfX(s, whole, weights, box));
  return parts;
}

Plan PlanOf(std::vector<Part> parts) {
  Plan plan;
  for (Part& p : parts) {
    p.gang = GangNeedsOf(p.run);
    const uint64_t sizes[] = {
        p.in[0].move ? p.in[0].wanted.get_size() : 0, p.in[1].move ? p.in[1].wanted.get_size() : 0,
        p.out.move ? p.out.wanted.get_size() : 0, p.adds ? p.out.plain.get_size() : 0, p.pad.get_size()};
    for (int i = 0; i < 5; i++) plan.sizes[i] = std::max(plan.sizes[i], Aligned(sizes[i]));
  }
  plan.parts = std::move(parts);
  return plan;
}

// For the current number of threads. Weights packed for another number may leave oneDNN reference code only;
// then they stay plain.
Plan MakePlan(const Conv& s, const Geometry& whole, Make make, const Layout& weights) {
  try {
    return PlanOf(make(s, whole, weights));
  } catch (const dnnl::error&) {
    if (weights == AnyLayout(whole.w)) throw;
  }
  Plan plan = PlanOf(make(s, whole, AnyLayout(whole.w)));
  plan.packed = false;
  return plan;
}

// Constant weights are packed once, in the layout of the first part, if all parts accept it.
std::unique_ptr<Grad> MakeGrad(const Conv& s, const Geometry& whole, Make make, const void* weights) {
  auto g = std::make_unique<Grad>();
  g->weights = AnyLayout(whole.w);
  SetThreads(Budget());
  if (weights != nullptr) {
    g->weights = make(s, whole, g->weights).front().in[1].wanted;
    g->constant = Pack(Plain(whole.w), weights, g->weights);
  }
  g->plans =
      std::make_unique<PerThreads<Plan>>([=, any = g->weights] { return MakePlan(s, whole, make, any); });
  g->scratch = g->plans->First().Total();
  return g;
}

// If oneDNN refuses a part, or has only reference code for it, the loops compute everything.
keel_rc PrepareGrad(const Node& node, const Conv& s, Make make, const void* weights,
                    keel_rc (*loop)(const Node&, keel_launch*), keel_launch* launch) {
  const Geometry whole = Describe(s);
  const auto by_loops = [&] {
    Explain(launch, "own loops: small, or not served by oneDNN");
    return loop(node, launch);
  };
  if (!whole.fits || s.Work() < kSmallGrad) return by_loops();
  std::unique_ptr<Grad> g;
  for (const void* packed : {weights, static_cast<const void*>(nullptr)}) {
    try {
      if (g == nullptr) g = MakeGrad(s, whole, make, packed);
    } catch (const dnnl::error&) {
    }
  }
  if (g == nullptr) return by_loops();
  if (loop == PrepareConvGradWLoop && IsPadded(whole)) g->checked = s;
  const uint64_t bytes = g->scratch;
  return Keep(launch, std::move(g), Guard<RunGrad>, bytes);
}

keel_rc PrepareGradX(const Node& node, keel_launch* launch) {
  const keel_tensor dy = node.In(0), w = node.In(1), dx = node.Out(0);
  const void* weights = w.data != nullptr ? keel_ptr(&w) : nullptr;
  return PrepareGrad(node, ReadConv(node, dx, w, dy), MakeX, weights, PrepareConvGradXLoop, launch);
}
keel_rc PrepareGradW(const Node& node, keel_launch* launch) {
  const keel_tensor dy = node.In(0), x = node.In(1), dw = node.Out(0);
  const Conv s = ReadConv(node, x, dw, dy);
  SetThreads(Budget());
  if (!IsInner(node) && Describe(s).fits && s.Work() >= kSmallGrad && SharesOf(s).at_once > 1)
    return PrepareSingleOp(node, launch);  // images are distributed over threads
  return PrepareGrad(node, s, MakeW, nullptr, PrepareConvGradWLoop, launch);
}

constexpr keel_impl kImpls[] = {
    Impl("conv_grad_x", "oneDNN convolution, backward", Prepare<PrepareGradX>, KEEL_IMPL_THREAD_BITS, "T=f32",
         1),
    Impl("conv_grad_w", "oneDNN convolution, backward weights", Prepare<PrepareGradW>, KEEL_IMPL_THREAD_BITS,
         "T=f32", 1),
};

}  // namespace

int64_t GradWork(const Conv& s) {
  const bool few = std::min(s.PerGroupIn(), s.PerGroupOut()) < 8;
  return (few ? 8 : 2) * s.Work() + TouchWork(s.n * (s.c * s.w.Cells(s.w.image) + s.o * s.w.Cells(s.w.out)));
}

Shares SharesOf(const Conv& s) {
  constexpr int64_t kMost = 8 << 20;  // weights of all concurrent shares
  const int64_t threads = std::min<int64_t>(keel_threads_get(), s.n);
  const Dims weights = s.WDims();
  const int64_t size = Product(weights.data(), static_cast<int64_t>(weights.size()));
  if (threads < 2 || threads * size > kMost || GradWork(s) / s.n > PartWork()) return {};
  const int64_t rounds = (GradWork(s) / PartWork() + threads) / threads,
                parts = std::min(s.n, rounds * threads);
  Shares shares{static_cast<int>(threads), {}};
  for (int64_t i = 0; i < parts; i++) {
    const int64_t from = s.n * i / parts, to = s.n * (i + 1) / parts;
    shares.images.push_back({{from}, {to - from}});
  }
  return shares;
}
dnnl::convolution_forward::primitive_desc Hint(const Geometry& g) {
  return {Engine(),
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          AnyLayout(g.x),
          AnyLayout(g.w),
          AnyLayout(g.y),
          g.stride,
          g.dil,
          g.lo,
          g.hi,
          UserScratch()};
}

Impls ConvGradImpls() { return kImpls; }

}  // namespace keel_cpu
