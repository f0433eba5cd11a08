// region_ops.cc: the contractions of a region as primitives: convolution and matrix product, each with
// weights packed once, a bias, and post-ops in the order in which the graph has them.
#include <cstring>
#include <optional>

#include "conv.h"
#include "matmul.h"
#include "region.h"

namespace keel_cpu {
namespace {

// The post-ops of a recipe as oneDNN's attributes, and the operands that they bring.
struct Attributes {
  struct Other {
    int position;
    uint32_t value;
    Dims view;  // dims under which the primitive sees it
    bool whole;
  };
  dnnl::primitive_attr attr = UserScratch();
  std::vector<Other> others;
  const PostOp* sum = nullptr;  // what is added in place
};

using View = std::function<std::optional<Dims>(const BodyValue&)>;

// False: an operand does not broadcast in a way that the primitive knows.
bool Describe(Builder& b, const Recipe& r, const Dims& out, bool in_place, const View& view, Attributes* a) {
  dnnl::post_ops ops;
  for (const PostOp& p : r.post) {
    if (!b.Allows(p)) return false;
    if (p.kind == PostOp::kUnary) {
      ops.append_eltwise(p.algorithm, p.alpha, p.beta);
      continue;
    }
    const std::optional<Dims> dims = view(b.Value(p.other));
    if (!dims) return false;
    const bool whole = *dims == out;
    if (in_place && whole && a->sum == nullptr && p.algorithm == dnnl::algorithm::binary_add &&
        b.MayTake(p.other, p.node)) {
      ops.append_sum(1.0f);
      a->sum = &p;
      continue;
    }
    const auto type = TypeOf(b.Value(p.other).dtype);
    ops.append_binary(p.algorithm, whole && in_place ? AnyLayout(out, type) : Plain(*dims, type));
    a->others.push_back({ops.len() - 1, p.other, *dims, whole && in_place});
  }
  a->attr.set_post_ops(ops);
  return true;
}

template <class Desc>
bool Good(const Desc& d) {
  return std::strstr(d.impl_info_str(), "ref") == nullptr;
}

int BiasOf(Builder& b, const Recipe& r) {
  if (r.shift.empty()) return -1;
  return b.Constant(b.constants->Vector(r.shift), r.shift.size() * sizeof(float));
}

// The rest is alike for both: operands of the post-ops, the result, the scratchpad.
template <class P>
void EmitWith(Builder& b, const typename P::primitive_desc& d, const Recipe& r, const Attributes& a,
              std::vector<Arg> args) {
  for (const auto& o : a.others) {
    const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(o.position) | DNNL_ARG_SRC_1;
    const Layout layout =
        o.whole ? d.query_md(dnnl::query::exec_arg_md, id) : Plain(o.view, TypeOf(b.Value(o.value).dtype));
    args.push_back({id, layout, b.Need(o.value, layout)});
  }
  const Layout out = d.dst_desc();
  int made;
  if (a.sum != nullptr)
    b.MadeIn(r.out, out, made = b.Take(a.sum->other, a.sum->node, out));
  else
    made = b.Made(r.out, out);
  args.push_back({DNNL_ARG_DST, out, made});
  const Layout pad = d.scratchpad_desc();
  if (pad.get_size() > 0) args.push_back({DNNL_ARG_SCRATCHPAD, pad, b.Scratch(pad.get_size())});
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
  Forward::primitive_desc d;
  try {
    d = Forward::primitive_desc(Engine(), dnnl::prop_kind::forward_inference,
                                dnnl::algorithm::convolution_direct, AnyLayout(g.x, type),
                                AnyLayout(g.w, type), bias, AnyLayout(g.y, type), g.stride, g.dil, g.lo, g.hi,
                                a.attr);
  } catch (const dnnl::error&) {
    return false;
  }
  if (!Good(d)) return false;
  const int64_t per_channel = Product(g.w.data(), static_cast<int64_t>(g.w.size())) / s.o;
  const int weights =
      Weights(b, node, r, Plain(g.w, type), d.weights_desc(), [=](int64_t i) { return i / per_channel; });
  EmitWith<Forward>(b, d, r, a,
                    {{DNNL_ARG_SRC, d.src_desc(), b.Need(node.in[0], d.src_desc())},
                     {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                     {DNNL_ARG_BIAS, bias, BiasOf(b, r)}});
  return true;
}

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
                                Plain(c, type), a.attr);
  } catch (const dnnl::error&) {
    return false;
  }
  if (!Good(d)) return false;
  const bool tb = s.tb;
  const int64_t n = s.n, k = s.k;
  const int weights =
      Weights(b, node, r, right, d.weights_desc(), [=](int64_t i) { return tb ? i / k : i % n; });
  EmitWith<Product>(b, d, r, a,
                    {{DNNL_ARG_SRC, left, b.Need(node.in[0], b.PlainOf(node.in[0]))},
                     {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                     {DNNL_ARG_BIAS, bias, BiasOf(b, r)}});
  return true;
}

}  // namespace keel_cpu
