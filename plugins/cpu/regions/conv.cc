// conv.cc: a convolution of a region: one primitive, parts, or copied strips if its images cannot be split in
// place.
#include <algorithm>
#include <atomic>

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/regions/invalid.h"
#include "plugins/cpu/regions/ops.h"

namespace keel_cpu {

using Forward = dnnl::convolution_forward;

Parts<Forward> ConvParts(const Conv& s, const Geometry& g, const Forward::primitive_desc& d,
                         const Layout& bias, int64_t finer) {
  Parts<Forward> cut;
  const std::vector<Box> boxes = Boxes({s.n, s.w.out[0]}, s.Work() * finer);
  if (boxes.size() == 1) return cut;
  const int64_t reach = s.w.Reach(0), stride = s.w.stride[0], lo = s.w.lo[0];
  for (const Box& box : boxes) {
    const int64_t from = box.lo[1] * stride - lo, to = (box.lo[1] + box.size[1] - 1) * stride + reach - lo;
    const int64_t first = std::max<int64_t>(0, from), stop = std::min(s.w.image[0], to);
    if (first >= stop) return {};
    // The channels, between the two dims, are never split.
    const Box x = {{box.lo[0], 0, first}, {box.size[0], s.c, stop - first}};
    const Box y = {{box.lo[0], 0, box.lo[1]}, {box.size[0], s.o, box.size[1]}};
    Parts<Forward>::Part p;
    p.src = PartOf(d.src_desc(), x, 3, &p.src_at);
    p.out = PartOf(d.dst_desc(), y, 3, &p.out_at);
    p.weights = d.weights_desc();
    p.bias = bias;
    p.box = y;
    p.x = x;
    p.leading = 3;
    p.lo = g.lo;
    p.hi = g.hi;
    p.lo[0] = first - from;
    p.hi[0] = to - stop;
    cut.parts.push_back(std::move(p));
  }
  cut.make = [g](const auto& p, const dnnl::primitive_attr& attr) {
    return Forward::primitive_desc(Engine(), dnnl::prop_kind::forward_inference,
                                   dnnl::algorithm::convolution_direct, p.src, p.weights, p.bias, p.out,
                                   g.stride, g.dil, p.lo, p.hi, attr);
  };
  return cut;
}

namespace {

// Up to so many channels, channels last takes twice the time of oneDNN's choice, whose rows cannot be split
// in place.
constexpr int64_t kFewChannels = 8;

// For layouts whose rows cannot be split in place: each strip is copied in, computed and copied out, and is
// small enough to stay in the cache. False: impossible, and nothing was emitted.
bool EmitStrips(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s,
                const Geometry& g, const Forward::primitive_desc& d, const Operands& whole) {
  struct Strip {
    Forward::primitive_desc conv;
    Layout in, out;
    uint64_t in_at, out_at;
    dnnl::reorder enter, leave;
    std::vector<Arg> others;
  };
  constexpr int64_t kFiner = 4;
  const Layout source = b.LayoutOf(node.in[0]);
  const Layout out = b.Value(r.out).result != kNone ? b.PlainOf(r.out) : d.dst_desc();
  const bool whole_sized =
      a.sum != nullptr || std::any_of(a.others.begin(), a.others.end(), [](auto& o) { return o.whole; });
  if (whole_sized || source.get_dims() != g.x || out.get_dims() != g.y) return false;
  std::vector<Strip> strips;
  const Parts<Forward> cut = ConvParts(s, g, d, whole.bias.layout, kFiner);
  for (const auto& p : cut.parts) {
    Strip t;
    t.others = OthersOf(whole.others, p.box, p.leading);
    auto any = p;
    any.src = AnyLayout(p.src.get_dims(), source.get_data_type());
    any.out = AnyLayout(p.out.get_dims(), source.get_data_type());
    t.conv = cut.make(any, Attr(r, a, t.others));
    if (!IsOptimized(t.conv)) return false;
    t.in = PartOf(source, p.x, 3, &t.in_at);
    t.out = PartOf(out, p.box, 3, &t.out_at);
    t.enter = dnnl::reorder({Engine(), t.in, Engine(), t.conv.src_desc(), UserScratch()});
    t.leave = dnnl::reorder({Engine(), t.conv.dst_desc(), Engine(), t.out, UserScratch()});
    strips.push_back(std::move(t));
  }
  const int from = b.BufferIn(node.in[0], source), to = b.ResultBuffer(r.out, out);
  for (Strip& t : strips) {
    const Layout x = t.conv.src_desc(), y = t.conv.dst_desc();
    const int in = b.Scratch(x.get_size()), made = b.Scratch(y.get_size());
    b.Emit(t.enter, {{DNNL_ARG_FROM, t.in, from, t.in_at}, {DNNL_ARG_TO, x, in}});
    const Operands mine = {
        {DNNL_ARG_SRC, x, in}, whole.weights, whole.bias, {DNNL_ARG_DST, y, made}, std::move(t.others)};
    b.Emit<Forward>(t.conv, mine.All());
    b.Emit(t.leave, {{DNNL_ARG_FROM, y, made}, {DNNL_ARG_TO, t.out, to, t.out_at}});
  }
  return !strips.empty();
}
// The state of RunCheckWeights.
struct WeightCount {
  int64_t n;
};
keel_rc RunCheckWeights(const keel_call* call) {
  std::atomic<bool> finite = true;
  ParallelFor(call, State<WeightCount>(call).n, 1, [&](int64_t begin, int64_t end) {
    if (!AllFinite(In<float>(call, 0) + begin, end - begin)) finite = false;
  });
  if (!finite) RaiseInvalid();
  return Done(call);
}
// Padding with infinite or NaN weights is left to the plugin's loops. Weights that are not constant are
// checked in each run, and the careful program uses the loops. False: use the loops.
bool WeightsFit(Builder& b, const BodyNode& node) {
  const BodyValue& w = b.Value(node.in[1]);
  if (w.data != nullptr) return AllFinite(static_cast<const float*>(w.data), w.Count());
  if (!b.Allows({.loses_nan = true})) return false;
  auto own = std::make_unique<OwnLaunch>();
  own->reports_nan_loss = true;
  Keep(&own->launch, WeightCount{w.Count()}, Guard<RunCheckWeights>);
  b.EmitOwn(std::move(own), {node.in[1]}, {}, {b.BufferIn(node.in[1], b.PlainOf(node.in[1]))});
  return true;
}
// Why oneDNN computes a convolution, and how.
std::string WayOf(const Forward::primitive_desc& d, bool strips) {
  const char* const how = strips                         ? "in copied strips"
                          : IsChannelsLast(d.src_desc()) ? "channels last"
                                                         : "in a layout of its own";
  return std::string("oneDNN, ") + how + ": no own loops serve it or are faster";
}
// False if oneDNN refuses.
bool Try(auto&& emit) {
  try {
    return emit();
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace

bool EmitConv(Builder& b, const BodyNode& node, const Recipe& r) {
  const keel_tensor x = node.node.In(0), w = node.node.In(1), y = node.node.Out(0);
  const Conv s = ReadConv(node.node, x, w, y);
  const Geometry g = Describe(s);
  const auto type = TypeOf(keel_dt_of(&x));
  Attributes a;
  const View view = [&](const BodyValue& v) { return Broadcast(v.dims, g.y); };
  if (!g.fits || !Describe(b, r, g.y, true, view, &a)) return false;
  const Layout bias = r.shift.empty() ? Layout() : Plain({s.o});
  const auto make = [&](const Layout& in, const Layout& out) {
    return Forward::primitive_desc(Engine(), dnnl::prop_kind::forward_inference,
                                   dnnl::algorithm::convolution_direct, in, AnyLayout(g.w, type), bias, out,
                                   g.stride, g.dil, g.lo, g.hi, Attr(b, r, a));
  };
  const auto done = [&](const char* way) { return b.Explain(node, way), true; };
  if (EmitPointwise(b, node, r, s, g)) return true;
  if (EmitDepthwise(b, node, r, s)) return done("own loops: each channel alone, of plain images");
  if (EmitGroupedConv(b, node, r, s))
    return done(s.groups > 1 ? "own products: groups of few channels, of plain images"
                             : "own products: plain images of few channels");
  Forward::primitive_desc d;
  try {
    if (b.channels_last || (s.Work() / s.n > PartWork() && s.PerGroupIn() >= kFewChannels))
      d = make(ChannelsLast(g.x, type), ChannelsLast(g.y, type));
  } catch (const dnnl::error&) {
  }
  const bool rows = d && (b.channels_last ? IsDirect(d) : IsOptimized(d));  // rows can be split in place
  try {
    if (!rows) d = make(AnyLayout(g.x, type), AnyLayout(g.y, type));
  } catch (const dnnl::error&) {
    return false;
  }
  if (!IsOptimized(d) || (IsPadded(g) && !WeightsFit(b, node))) return false;
  if (IsChannelsLast(d.src_desc()) && IsChannelsLast(d.dst_desc())) {
    if (Try([&] { return EmitWinograd(b, node, r, a, s); }))
      return done("Winograd: 3x3 windows, channels last, many tiles");
    if (EmitImages(b, node, r, a, s))
      return done("own products, channels last: no slower than oneDNN at this size");
  }
  const int64_t per_channel = Product(g.w.data(), static_cast<int64_t>(g.w.size())) / s.o;
  const int weights = Weights(b, node, r, Plain(g.w, type), d.weights_desc(), {per_channel, s.o});
  Operands args = {{DNNL_ARG_SRC, d.src_desc(), -1},
                   {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                   {DNNL_ARG_BIAS, bias, BiasOf(b, r)}};
  if (s.Work() / s.n > PartWork() && !rows) {
    args.others = OtherArgs(b, r, a, d);
    if (Try([&] { return EmitStrips(b, node, r, a, s, g, d, args); })) return done(WayOf(d, true).c_str());
  }
  args.src.buffer = b.BufferIn(node.in[0], d.src_desc());
  EmitWith<Forward>(b, d, r, a, {ConvParts(s, g, d, bias)}, std::move(args));
  return done(WayOf(d, false).c_str());
}

}  // namespace keel_cpu
