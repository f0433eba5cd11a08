// region_ops.cc: the contractions of a region as primitives: convolution and matrix product, each with
// weights packed once, a bias, and post-ops in the order in which the graph has them.
#include <algorithm>
#include <cstring>
#include <optional>

#include "conv.h"
#include "cut.h"
#include "matmul.h"
#include "region.h"

namespace keel_cpu {
namespace {

// What the post-ops of a recipe bring along.
struct Attributes {
  struct Other {
    uint32_t value;
    Dims view;  // dims under which the primitive sees it
    bool whole;
  };
  std::vector<Other> others;    // of the binary ones, in order
  const PostOp* sum = nullptr;  // what is added in place
};

using View = std::function<std::optional<Dims>(const BodyValue&)>;

// False: an operand does not broadcast in a way that the primitive knows.
bool Describe(Builder& b, const Recipe& r, const Dims& out, bool in_place, const View& view, Attributes* a) {
  for (const PostOp& p : r.post) {
    if (!b.Allows(p)) return false;
    if (p.kind == PostOp::kUnary) continue;
    const std::optional<Dims> dims = view(b.Value(p.other));
    if (!dims) return false;
    const bool whole = *dims == out;
    if (in_place && whole && a->sum == nullptr && p.algorithm == dnnl::algorithm::binary_add &&
        b.MayTake(p.other, p.node))
      a->sum = &p;
    else
      a->others.push_back({p.other, *dims, whole && in_place});
  }
  return true;
}

// The same as oneDNN's attributes; `others` are the layouts of the operands.
dnnl::primitive_attr Attr(const Recipe& r, const Attributes& a, const std::vector<Layout>& others,
                          bool adds = false, bool last = true) {
  dnnl::post_ops ops;
  size_t next = 0;
  if (adds) ops.append_sum(1.0f);
  for (const PostOp& p : r.post) {
    if (!last) break;
    if (p.kind == PostOp::kUnary)
      ops.append_eltwise(p.algorithm, p.alpha, p.beta);
    else if (&p == a.sum)
      ops.append_sum(1.0f);
    else
      ops.append_binary(p.algorithm, others[next++]);
  }
  dnnl::primitive_attr attr = UserScratch();
  attr.set_post_ops(ops);
  return attr;
}
// Where all of it is wanted, oneDNN chooses the layouts of operands as large as the result.
dnnl::primitive_attr Attr(Builder& b, const Recipe& r, const Attributes& a) {
  std::vector<Layout> layouts;
  for (const auto& o : a.others) {
    const auto type = TypeOf(b.Value(o.value).dtype);
    layouts.push_back(o.whole ? AnyLayout(o.view, type) : Plain(o.view, type));
  }
  return Attr(r, a, layouts);
}

template <class Desc>
bool Good(const Desc& d) {
  return std::strstr(d.impl_info_str(), "ref") == nullptr;
}

int BiasOf(Builder& b, const Recipe& r) {
  if (r.shift.empty()) return -1;
  return b.Constant(b.constants->Vector(r.shift), r.shift.size() * sizeof(float));
}

// A contraction in parts: how a part's primitive is made.
template <class P>
struct Parts {
  struct Part {
    Layout src, weights, bias, out;
    uint64_t src_at = 0, weights_at = 0, bias_at = 0, out_at = 0;  // where it begins, in bytes
    bool adds = false, last = true;  // to what is there; only the last one has post-ops
    Box box, x;                      // of the leading dims of the result, and of x
    size_t leading = 0;              // their number
    Dims lo, hi;                     // padding, of a convolution
  };
  std::vector<Part> parts;
  std::function<typename P::primitive_desc(const Part&, const dnnl::primitive_attr&)> make;
};

// The positions of binary post-ops and their arguments.
std::vector<Arg> OtherArgs(Builder& b, const Recipe& r, const Attributes& a, const auto& d) {
  std::vector<Arg> args;
  int position = 0;
  size_t next = 0;
  for (const PostOp& p : r.post) {
    if (p.kind == PostOp::kBinary && &p != a.sum) {
      const auto& o = a.others[next++];
      const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
      const Layout layout =
          o.whole ? d.query_md(dnnl::query::exec_arg_md, id) : Plain(o.view, TypeOf(b.Value(o.value).dtype));
      args.push_back({id, layout, b.Need(o.value, layout)});
    }
    position++;
  }
  return args;
}

void AddScratch(Builder& b, const Layout& pad, std::vector<Arg>* args) {
  if (pad.get_size() > 0) args->push_back({DNNL_ARG_SCRATCHPAD, pad, b.Scratch(pad.get_size())});
}

// args: source, weights, bias, then what OtherArgs gave, then the result. False: not every part has a good
// primitive.
template <class P>
bool EmitParts(Builder& b, const Recipe& r, const Attributes& a, const Parts<P>& cut,
               const std::vector<Arg>& whole) {
  std::vector<typename P::primitive_desc> made;
  std::vector<std::vector<Arg>> args;
  try {
    for (const auto& part : cut.parts) {
      std::vector<Arg> mine = whole;
      std::vector<Layout> others;
      if (!part.last) mine.erase(mine.begin() + 3, mine.end() - 1);
      for (size_t i = 3; i + 1 < mine.size(); i++) {
        if (part.adds) mine[i].id += DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) - DNNL_ARG_ATTR_MULTIPLE_POST_OP(0);
        others.push_back(mine[i].layout = PartOf(whole[i].layout, part.box, part.leading, &mine[i].offset));
      }
      mine[0] = {DNNL_ARG_SRC, part.src, whole[0].buffer, part.src_at};
      mine[1] = {DNNL_ARG_WEIGHTS, part.weights, whole[1].buffer, part.weights_at};
      mine[2] = {DNNL_ARG_BIAS, part.bias, part.bias.is_zero() ? -1 : whole[2].buffer, part.bias_at};
      mine.back() = {DNNL_ARG_DST, part.out, whole.back().buffer, part.out_at};
      made.push_back(cut.make(part, Attr(r, a, others, part.adds, part.last)));
      if (!Good(made.back())) return false;
      args.push_back(std::move(mine));
    }
  } catch (const dnnl::error&) {
    return false;
  }
  for (size_t i = 0; i < made.size(); i++) {
    AddScratch(b, made[i].scratchpad_desc(), &args[i]);
    b.Emit(P(made[i]), std::move(args[i]));
  }
  return true;
}

// The rest is alike for both: operands of the post-ops, the result, the scratchpad, parts of what takes long
// by the first way to cut it that oneDNN is good at.
template <class P>
void EmitWith(Builder& b, const typename P::primitive_desc& d, const Recipe& r, const Attributes& a,
              const std::vector<Parts<P>>& cuts, std::vector<Arg> args) {
  for (Arg& other : OtherArgs(b, r, a, d)) args.push_back(std::move(other));
  const Layout out = d.dst_desc();
  int made;
  if (a.sum != nullptr)
    b.MadeIn(r.out, out, made = b.Take(a.sum->other, a.sum->node, out));
  else
    made = b.Made(r.out, out);
  args.push_back({DNNL_ARG_DST, out, made});
  for (const Parts<P>& cut : cuts)
    if (cut.parts.size() > 1 && EmitParts(b, r, a, cut, args)) return;
  AddScratch(b, d.scratchpad_desc(), &args);
  b.Emit(P(d), std::move(args));
}

// Constant weights times the recipe's scale; `channel` gives the channel of an element.
template <class F>
const void* Scaled(const BodyValue& w, const std::vector<float>& scale, Bytes* own, F&& channel) {
  if (scale.empty()) return w.data;
  const int64_t n = w.Count();
  *own = Allocate(static_cast<size_t>(n) * sizeof(float));
  float* to = reinterpret_cast<float*>(own->get());
  const float* from = static_cast<const float*>(w.data);
  for (int64_t i = 0; i < n; i++) to[i] = from[i] * scale[static_cast<size_t>(channel(i))];
  return to;
}

// Weights in the layout that a primitive wants: packed at prepare if constant, else at each run.
template <class F>
int Weights(Builder& b, const BodyNode& node, const Recipe& r, const Layout& plain, const Layout& wanted,
            F&& channel) {
  const BodyValue& w = b.Value(node.in[1]);
  if (w.data != nullptr) {
    const void* key = r.scale.empty() ? w.data : static_cast<const void*>(&node);
    return b.Constant(
        b.constants->Get(key, plain, wanted, [&](Bytes* own) { return Scaled(w, r.scale, own, channel); }),
        wanted.get_size());
  }
  const int given = b.Need(node.in[1], b.PlainOf(node.in[1]));
  if (plain == wanted) return given;
  const int packed = b.Scratch(wanted.get_size());
  b.Emit(dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), plain, Engine(), wanted, UserScratch())),
         {{DNNL_ARG_FROM, plain, given}, {DNNL_ARG_TO, wanted, packed}});
  return packed;
}

// Dims aligned at the last one, with ones in front; none if it does not broadcast to `out`.
std::optional<Dims> Aligned(const Dims& dims, const Dims& out) {
  if (dims.size() > out.size()) return {};
  Dims d(out.size() - dims.size(), 1);
  d.insert(d.end(), dims.begin(), dims.end());
  for (size_t i = 0; i < d.size(); i++)
    if (d[i] != 1 && d[i] != out[i]) return {};
  return d;
}

// The same for a product, whose batch dims may have been merged into m or into each other.
std::optional<Dims> MatmulView(const Dims& dims, const Dims& c, const Dims& merged) {
  const std::optional<Dims> d = Aligned(dims, c);
  if (!d) return {};
  const size_t rank = c.size(), to = merged.size();
  const int64_t m = (*d)[rank - 2], n = (*d)[rank - 1];
  Dims view(to, 1);
  if (*d == c) return merged;
  bool one_matrix = true;  // repeated for each batch
  for (size_t i = 0; i + 2 < rank; i++) one_matrix &= (*d)[i] == 1;
  view[to - 1] = n;
  if (one_matrix && (m == 1 || merged[to - 2] == m)) {
    view[to - 2] = m;
    return view;
  }
  Dims columns = c;
  columns.back() = 1;
  if (*d != columns) return {};
  view = merged;
  view.back() = 1;
  return view;
}

// Up to here channels last is half as fast as what oneDNN chooses, whose rows cannot be cut in place.
constexpr int64_t kFewChannels = 8;

Layout ChannelsLast(const Dims& dims, dnnl::memory::data_type type) {
  Dims strides(dims.size());
  int64_t step = dims[1];
  for (size_t d = dims.size(); d-- > 2; step *= dims[d]) strides[d] = step;
  strides[0] = step;
  strides[1] = 1;
  return Strided(dims, strides, type);
}

// Images, or rows of one image, which must be channels last; no parts: one primitive does it soon enough.
Parts<dnnl::convolution_forward> ConvParts(const Conv& s, const Geometry& g,
                                           const dnnl::convolution_forward::primitive_desc& d,
                                           const Layout& bias, int64_t finer = 1) {
  Parts<dnnl::convolution_forward> cut;
  const std::vector<Box> boxes = Boxes({s.n, s.w.out[0]}, s.Work() * finer);
  if (boxes.size() == 1) return cut;
  const int64_t reach = s.w.dil[0] * (s.w.window[0] - 1) + 1, stride = s.w.stride[0], lo = s.w.lo[0];
  for (const Box& box : boxes) {
    const int64_t from = box.lo[1] * stride - lo, to = (box.lo[1] + box.size[1] - 1) * stride + reach - lo;
    const int64_t first = std::max<int64_t>(0, from), stop = std::min(s.w.image[0], to);
    if (first >= stop) return {};
    // The channels between the two dims are never cut.
    const Box x = {{box.lo[0], 0, first}, {box.size[0], s.c, stop - first}};
    const Box y = {{box.lo[0], 0, box.lo[1]}, {box.size[0], s.o, box.size[1]}};
    typename Parts<dnnl::convolution_forward>::Part p;
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
    return dnnl::convolution_forward::primitive_desc(Engine(), dnnl::prop_kind::forward_inference,
                                                     dnnl::algorithm::convolution_direct, p.src, p.weights,
                                                     p.bias, p.out, g.stride, g.dil, p.lo, p.hi, attr);
  };
  return cut;
}

// Rows of images whose layout cannot be cut: each part is copied, computed and copied out again, small enough
// to stay in the cache meanwhile. False: not possible, and nothing was emitted.
bool EmitStrips(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s,
                const Geometry& g, const dnnl::convolution_forward::primitive_desc& d,
                const std::vector<Arg>& whole) {
  using Forward = dnnl::convolution_forward;
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
  const Parts<Forward> cut = ConvParts(s, g, d, whole[2].layout, kFiner);
  for (const auto& p : cut.parts) {
    Strip t;
    std::vector<Layout> others;
    for (size_t i = 3; i < whole.size(); i++) {
      t.others.push_back(whole[i]);
      others.push_back(t.others.back().layout = PartOf(whole[i].layout, p.box, 3, &t.others.back().offset));
    }
    auto any = p;
    any.src = AnyLayout(p.src.get_dims(), source.get_data_type());
    any.out = AnyLayout(p.out.get_dims(), source.get_data_type());
    t.conv = cut.make(any, Attr(r, a, others));
    if (!Good(t.conv)) return false;
    t.in = PartOf(source, p.x, 3, &t.in_at);
    t.out = PartOf(out, p.box, 3, &t.out_at);
    t.enter = dnnl::reorder({Engine(), t.in, Engine(), t.conv.src_desc(), UserScratch()});
    t.leave = dnnl::reorder({Engine(), t.conv.dst_desc(), Engine(), t.out, UserScratch()});
    strips.push_back(std::move(t));
  }
  const int from = b.Need(node.in[0], source), to = b.Made(r.out, out);
  for (Strip& t : strips) {
    const Layout x = t.conv.src_desc(), y = t.conv.dst_desc();
    const int in = b.Scratch(x.get_size()), made = b.Scratch(y.get_size());
    b.Emit(t.enter, {{DNNL_ARG_FROM, t.in, from, t.in_at}, {DNNL_ARG_TO, x, in}});
    std::vector<Arg> args = {{DNNL_ARG_SRC, x, in}, whole[1], whole[2], {DNNL_ARG_DST, y, made}};
    args.insert(args.end(), t.others.begin(), t.others.end());
    AddScratch(b, t.conv.scratchpad_desc(), &args);
    b.Emit(Forward(t.conv), std::move(args));
    b.Emit(t.leave, {{DNNL_ARG_FROM, y, made}, {DNNL_ARG_TO, t.out, to, t.out_at}});
  }
  return !strips.empty();
}
bool TryStrips(auto&&... args) {
  try {
    return EmitStrips(args...);
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
  const View view = [&](const BodyValue& v) { return Aligned(v.dims, g.y); };
  if (!g.fits || !Describe(b, r, g.y, true, view, &a)) return false;
  const Layout bias = r.shift.empty() ? Layout() : Plain({s.o});
  using Forward = dnnl::convolution_forward;
  const auto make = [&](const Layout& in, const Layout& out) {
    return Forward::primitive_desc(Engine(), dnnl::prop_kind::forward_inference,
                                   dnnl::algorithm::convolution_direct, in, AnyLayout(g.w, type), bias, out,
                                   g.stride, g.dil, g.lo, g.hi, Attr(b, r, a));
  };
  Forward::primitive_desc d;
  try {
    if (s.Work() / s.n > PartWork() && s.PerGroupIn() >= kFewChannels)
      d = make(ChannelsLast(g.x, type), ChannelsLast(g.y, type));
  } catch (const dnnl::error&) {
  }
  const bool rows = d && Good(d);  // can be cut
  try {
    if (!rows) d = make(AnyLayout(g.x, type), AnyLayout(g.y, type));
  } catch (const dnnl::error&) {
    return false;
  }
  if (!Good(d)) return false;
  const int64_t per_channel = Product(g.w.data(), static_cast<int64_t>(g.w.size())) / s.o;
  const int weights =
      Weights(b, node, r, Plain(g.w, type), d.weights_desc(), [=](int64_t i) { return i / per_channel; });
  std::vector<Arg> args = {{DNNL_ARG_SRC, d.src_desc(), -1},
                           {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                           {DNNL_ARG_BIAS, bias, BiasOf(b, r)}};
  if (s.Work() / s.n > PartWork() && !rows) {
    std::vector<Arg> all = args;
    for (Arg& other : OtherArgs(b, r, a, d)) all.push_back(std::move(other));
    if (TryStrips(b, node, r, a, s, g, d, all)) return true;
  }
  args[0].buffer = b.Need(node.in[0], d.src_desc());
  EmitWith<Forward>(b, d, r, a, {ConvParts(s, g, d, bias)}, std::move(args));
  return true;
}

namespace {

using MatmulPart = Parts<dnnl::matmul>::Part;

// The part of all operands that a box of batch, rows, columns and depth is.
MatmulPart MatmulPartOf(const dnnl::matmul::primitive_desc& d, const Layout& left, const Layout& bias,
                        const Box& all, int64_t depth) {
  const size_t rank = all.size.size() - 1, row = rank - 2, column = rank - 1, deep = rank;
  const auto pick = [&](size_t i, size_t j) {
    Box b = {Dims(all.lo.begin(), all.lo.end() - 3), Dims(all.size.begin(), all.size.end() - 3)};
    for (size_t at : {i, j}) {
      b.lo.push_back(all.lo[at]);
      b.size.push_back(all.size[at]);
    }
    return b;
  };
  MatmulPart p;
  p.box = pick(row, column);
  p.leading = rank;
  p.src = PartOf(left, pick(row, deep), rank, &p.src_at);
  p.weights = PartOf(d.weights_desc(), pick(deep, column), rank, &p.weights_at);
  p.out = PartOf(d.dst_desc(), p.box, rank, &p.out_at);
  p.adds = all.lo[deep] > 0;
  p.last = all.lo[deep] + all.size[deep] == depth;
  if (!bias.is_zero() && !p.adds) p.bias = PartOf(bias, p.box, rank, &p.bias_at);
  return p;
}

// Some of the batch; of one product rows, or columns where there are more, or (deep) parts of its sums, which
// are added up where the result lies, so nothing else may lie there.
Parts<dnnl::matmul> MatmulParts(const MatmulShape& s, const dnnl::matmul::primitive_desc& d,
                                const Layout& left, const Layout& bias, bool deep) {
  constexpr int64_t kGrain = 192;  // a multiple of all blocks of packed weights
  Parts<dnnl::matmul> cut;
  const Dims out = d.dst_desc().get_dims();
  const size_t batch = out.size() - 2;
  const int64_t finer = s.m * s.n < 16 ? 4 : 1;  // one thread reads so few rows
  const int64_t work = s.Work() + finer * TouchWork(s.Touched());
  const bool rows = s.m >= s.n;
  std::vector<size_t> order = {rows ? batch : batch + 1};
  // The other dim too where this one has not enough: parts that are a little long are no reason.
  if (work / std::max(s.m, s.n) * kGrain > PartWork()) order.push_back(rows ? batch + 1 : batch);
  if (deep) order = {batch + 2};
  if (work <= PartWork()) return cut;
  Dims all = out, dims(out.begin(), out.end() - 2);
  all.push_back(s.k);
  for (size_t i : order) dims.push_back(all[i]);
  try {
    for (const Box& box : Boxes(dims, work, rows && !deep ? 48 : kGrain)) {
      Box part = {Dims(all.size()), all};
      for (size_t i = 0; i < dims.size(); i++) {
        const size_t at = i < batch ? i : order[i - batch];
        part.lo[at] = box.lo[i];
        part.size[at] = box.size[i];
      }
      cut.parts.push_back(MatmulPartOf(d, left, bias, part, s.k));
    }
  } catch (const dnnl::error&) {
    return {};
  }
  cut.make = [](const auto& p, const dnnl::primitive_attr& attr) {
    return dnnl::matmul::primitive_desc(Engine(), p.src, p.weights, p.bias, p.out, attr);
  };
  return cut;
}

}  // namespace

bool EmitMatmul(Builder& b, const BodyNode& node, const Recipe& r) {
  const MatmulShape s = ReadMatmul(node.node);
  const auto type = TypeOf(b.Value(node.in[0]).dtype);
  if (!PaysOneDnn(s) || s.Work() == 0) return false;
  const Layout left = MatmulOperand(s, 0, type), right = MatmulOperand(s, 1, type);
  Dims c(s.batch.dims, s.batch.dims + s.batch.rank - 1), row(c.size(), 1);
  c.insert(c.end(), {s.m, s.n});
  row.insert(row.end(), {1, s.n});
  Attributes a;
  const Dims& full = b.Value(node.out[0]).dims;
  const View view = [&](const BodyValue& v) { return MatmulView(v.dims, full, c); };
  if (!Describe(b, r, c, b.Value(r.out).result == kNone, view, &a)) return false;
  const bool constant = b.Value(node.in[1]).data != nullptr;
  const Layout bias = r.shift.empty() ? Layout() : Plain(row);
  using Product = dnnl::matmul;
  Product::primitive_desc d;
  try {
    d = Product::primitive_desc(Engine(), left, constant ? AnyLayout(right.get_dims(), type) : right, bias,
                                Plain(c, type), Attr(b, r, a));
  } catch (const dnnl::error&) {
    return false;
  }
  if (!Good(d)) return false;
  const bool tb = s.tb;
  const int64_t n = s.n, k = s.k;
  const int weights =
      Weights(b, node, r, right, d.weights_desc(), [=](int64_t i) { return tb ? i / k : i % n; });
  std::vector<Parts<Product>> cuts = {MatmulParts(s, d, left, bias, false)};
  if (a.sum == nullptr)
    cuts.insert(s.k > 16 * std::max(s.m, s.n) ? cuts.begin() : cuts.end(),
                MatmulParts(s, d, left, bias, true));
  EmitWith<Product>(b, d, r, a, cuts,
                    {{DNNL_ARG_SRC, left, b.Need(node.in[0], b.PlainOf(node.in[0]))},
                     {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                     {DNNL_ARG_BIAS, bias, BiasOf(b, r)}});
  return true;
}

}  // namespace keel_cpu
