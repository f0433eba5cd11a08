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
dnnl::primitive_attr Attr(const Recipe& r, const Attributes& a, const std::vector<Layout>& others) {
  dnnl::post_ops ops;
  size_t next = 0;
  for (const PostOp& p : r.post) {
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
    uint64_t src_at = 0, weights_at = 0, out_at = 0;  // where it begins, in bytes
    Box box;                                          // of the leading dims of the result
    size_t leading = 0;                               // their number
    Dims lo, hi;                                      // padding, of a convolution
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
      for (size_t i = 3; i + 1 < mine.size(); i++)
        others.push_back(mine[i].layout = PartOf(whole[i].layout, part.box, part.leading, &mine[i].offset));
      mine[0] = {DNNL_ARG_SRC, part.src, whole[0].buffer, part.src_at};
      mine[1] = {DNNL_ARG_WEIGHTS, part.weights, whole[1].buffer, part.weights_at};
      mine.back() = {DNNL_ARG_DST, part.out, whole.back().buffer, part.out_at};
      made.push_back(cut.make(part, Attr(r, a, others)));
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

// The rest is alike for both: operands of the post-ops, the result, the scratchpad, parts of what takes long.
template <class P>
void EmitWith(Builder& b, const typename P::primitive_desc& d, const Recipe& r, const Attributes& a,
              const Parts<P>& cut, std::vector<Arg> args) {
  for (Arg& other : OtherArgs(b, r, a, d)) args.push_back(std::move(other));
  const Layout out = d.dst_desc();
  int made;
  if (a.sum != nullptr)
    b.MadeIn(r.out, out, made = b.Take(a.sum->other, a.sum->node, out));
  else
    made = b.Made(r.out, out);
  args.push_back({DNNL_ARG_DST, out, made});
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

// Up to here channels last is half as fast as what oneDNN chooses, whose rows cannot be cut.
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
                                           const Layout& bias) {
  Parts<dnnl::convolution_forward> cut;
  const std::vector<Box> boxes = Boxes({s.n, s.w.out[0]}, s.Work());
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
  try {
    if (!d || !Good(d)) d = make(AnyLayout(g.x, type), AnyLayout(g.y, type));
  } catch (const dnnl::error&) {
    return false;
  }
  if (!Good(d)) return false;
  const int64_t per_channel = Product(g.w.data(), static_cast<int64_t>(g.w.size())) / s.o;
  const int weights =
      Weights(b, node, r, Plain(g.w, type), d.weights_desc(), [=](int64_t i) { return i / per_channel; });
  EmitWith<Forward>(b, d, r, a, ConvParts(s, g, d, bias),
                    {{DNNL_ARG_SRC, d.src_desc(), b.Need(node.in[0], d.src_desc())},
                     {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                     {DNNL_ARG_BIAS, bias, BiasOf(b, r)}});
  return true;
}

namespace {

// Some of the batch, or rows of one product.
Parts<dnnl::matmul> MatmulParts(const MatmulShape& s, const dnnl::matmul::primitive_desc& d,
                                const Layout& left, const Layout& bias) {
  Parts<dnnl::matmul> cut;
  Dims dims = d.dst_desc().get_dims();
  dims.pop_back();
  const std::vector<Box> boxes = Boxes(dims, s.Work());
  if (boxes.size() == 1) return cut;
  for (const Box& box : boxes) {
    typename Parts<dnnl::matmul>::Part p;
    p.src = PartOf(left, box, dims.size(), &p.src_at);
    p.weights = PartOf(d.weights_desc(), box, dims.size() - 1, &p.weights_at);
    p.out = PartOf(d.dst_desc(), box, dims.size(), &p.out_at);
    p.bias = bias;
    p.box = box;
    p.leading = dims.size();
    cut.parts.push_back(std::move(p));
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
  EmitWith<Product>(b, d, r, a, MatmulParts(s, d, left, bias),
                    {{DNNL_ARG_SRC, left, b.Need(node.in[0], b.PlainOf(node.in[0]))},
                     {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                     {DNNL_ARG_BIAS, bias, BiasOf(b, r)}});
  return true;
}

}  // namespace keel_cpu
