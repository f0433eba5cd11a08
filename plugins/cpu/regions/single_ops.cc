// single_ops.cc: ops of a region that become one primitive each. They keep the layout of their operand. On
// plain operands the plugin's own impls are as fast, so these emitters return false there.
#include "plugins/cpu/conv/window.h"
#include "plugins/cpu/regions/region.h"

namespace keel_cpu {
namespace {

template <class P>
bool TryEmit(Builder& b, const typename P::primitive_desc& d, uint32_t out, std::vector<Arg> args) {
  args.push_back({DNNL_ARG_DST, d.dst_desc(), b.ResultBuffer(out, d.dst_desc())});
  b.Emit<P>(d, std::move(args));
  return true;
}

constexpr auto kInference = dnnl::prop_kind::forward_inference;

bool Unary(Builder& b, const BodyNode& n, uint32_t x, const PostOp& op) {
  const Layout layout = b.LayoutOf(x);
  const dnnl::eltwise_forward::primitive_desc d(Engine(), kInference, op.algorithm, layout, layout, op.alpha,
                                                op.beta, UserScratch());
  return IsOptimized(d) &&
         TryEmit<dnnl::eltwise_forward>(b, d, n.out[0], {{DNNL_ARG_SRC, layout, b.BufferIn(x, layout)}});
}

bool Binary(Builder& b, const BodyNode& n, uint32_t x, const PostOp& op) {
  const Layout layout = b.LayoutOf(x);
  const BodyValue &value = b.Value(x), &other = b.Value(op.other);
  Dims dims(value.dims.size() - other.dims.size(), 1);
  dims.insert(dims.end(), other.dims.begin(), other.dims.end());
  const Layout second = dims == value.dims ? layout : Plain(dims, layout.get_data_type());
  const dnnl::binary::primitive_desc d(Engine(), op.algorithm, layout, second, layout, UserScratch());
  return IsOptimized(d) && TryEmit<dnnl::binary>(b, d, n.out[0],
                                                 {{DNNL_ARG_SRC_0, layout, b.BufferIn(x, layout)},
                                                  {DNNL_ARG_SRC_1, second, b.BufferIn(op.other, second)}});
}

bool Elementwise(Builder& b, const BodyNode& n) {
  const bool only = FindImpl(n) == nullptr;  // an op with a body, without an impl of this plugin
  const uint32_t number = static_cast<uint32_t>(&n - b.body.nodes.data());
  for (uint32_t x : n.in) {
    if (b.Value(x).dtype != b.Value(n.out[0]).dtype || b.Value(x).dtype != KEEL_F32) continue;
    std::vector<PostOp> post;
    if ((!only && !b.Blocked(x)) || b.Value(x).dims != b.Value(n.out[0]).dims) continue;
    if (b.LayoutOf(x).get_dims() != b.Value(x).dims) continue;
    if (!PostOpsOf(b.body, number, x, &post) || post.size() != 1 || !b.Allows(post[0])) continue;
    return post[0].kind == PostOp::kUnary ? Unary(b, n, x, post[0]) : Binary(b, n, x, post[0]);
  }
  return false;
}

// The plugin's own impl in the layout of its operand, which has no padding.
bool OwnUnary(Builder& b, const BodyNode& n) {
  const uint32_t x = n.in[0];
  const Layout layout = b.LayoutOf(x);
  if (layout.get_size() != static_cast<size_t>(b.Value(x).Count()) * sizeof(float)) return false;
  if (layout.get_dims() != b.Value(x).dims) return false;
  b.EmitOwn(n, &layout);
  return true;
}

// A pooling window in oneDNN's terms. False: oneDNN cannot express it, or a window may lie wholly in the
// padding.
struct PoolShape {
  Dims window, stride, dil, lo, hi;
};
bool Describe(const Builder& b, const BodyNode& n, PoolShape* p) {
  const Dims &x = b.Value(n.in[0]).dims, &y = b.Value(n.out[0]).dims;
  *p = {n.node.List("window"), n.node.List("stride"), n.node.List("dil"), n.node.List("lo"), {}};
  for (size_t d = 0; d < p->window.size(); d++) {
    const int64_t reach = p->dil[d] * (p->window[d] - 1) + 1;
    p->hi.push_back((y[d + 2] - 1) * p->stride[d] + reach - x[d + 2] - p->lo[d]);
    const bool padded = p->lo[d] > 0 || p->hi[d] > 0;
    if (p->hi[d] <= -p->stride[d] || p->lo[d] >= reach || p->hi[d] >= reach || (padded && p->dil[d] > 1))
      return false;
    p->dil[d]--;
  }
  return !p->window.empty() && p->window.size() <= 3;
}

bool EmitPooling(Builder& b, const BodyNode& n, dnnl::algorithm fn, const PoolShape& p, const Dims& out) {
  const Layout x = b.LayoutOf(n.in[0]);
  using Pooling = dnnl::pooling_forward;
  const Pooling::primitive_desc d(Engine(), kInference, fn, x, AnyLayout(out, x.get_data_type()), p.stride,
                                  p.window, p.dil, p.lo, p.hi, UserScratch());
  const bool floats = b.Value(n.in[0]).dtype == KEEL_F32;  // of integers oneDNN's maximum is right, too
  if (fn == dnnl::algorithm::pooling_max && floats) return EmitMaxPool(b, n, x, d.dst_desc());
  return IsOptimized(d) && TryEmit<Pooling>(b, d, n.out[0], {{DNNL_ARG_SRC, x, b.BufferIn(n.in[0], x)}});
}

bool Pool(Builder& b, const BodyNode& n) {
  PoolShape p;
  if (!b.Blocked(n.in[0]) || !Describe(b, n, &p)) return false;
  auto fn = dnnl::algorithm::pooling_max;
  if (n.op == "avg_pool") {
    const bool pads = n.node.Flag("count_pad");
    const Dims hi = n.node.List("hi");
    for (size_t d = 0; pads && d < hi.size(); d++)
      if (p.hi[d] > hi[d]) return false;  // a window extends beyond the padding
    fn = pads ? dnnl::algorithm::pooling_avg_include_padding : dnnl::algorithm::pooling_avg_exclude_padding;
  }
  return EmitPooling(b, n, fn, p, b.Value(n.out[0]).dims);
}

// The mean over all image dims is a pooling whose window is the image.
bool ImageMean(Builder& b, const BodyNode& n) {
  const Dims &x = b.Value(n.in[0]).dims, axes = n.node.List("axes");
  const size_t rank = x.size();
  if (!b.Blocked(n.in[0]) || rank < 3 || rank > 5 || axes.size() != rank - 2) return false;
  for (size_t i = 0; i < axes.size(); i++)
    if (axes[i] != static_cast<int64_t>(i) + 2) return false;
  PoolShape p = {Dims(x.begin() + 2, x.end()), Dims(rank - 2, 1), Dims(rank - 2), Dims(rank - 2),
                 Dims(rank - 2)};
  Dims out(rank, 1);
  out[0] = x[0];
  out[1] = x[1];
  return EmitPooling(b, n, dnnl::algorithm::pooling_avg_exclude_padding, p, out);
}

bool BatchNorm(Builder& b, const BodyNode& n) {
  if (!b.Blocked(n.in[0])) return false;
  using Norm = dnnl::batch_normalization_forward;
  using Flags = dnnl::normalization_flags;
  const Layout x = b.LayoutOf(n.in[0]);
  const Norm::primitive_desc d(Engine(), kInference, x, x, static_cast<float>(n.node.Real("eps")),
                               Flags::use_global_stats | Flags::use_scale | Flags::use_shift, UserScratch());
  if (!IsOptimized(d)) return false;
  std::vector<Arg> args = {{DNNL_ARG_SRC, x, b.BufferIn(n.in[0], x)}};
  constexpr int kIds[] = {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE};
  for (size_t i = 0; i < 4; i++) {
    const uint32_t v = n.in[i + 1];
    args.push_back({kIds[i], b.PlainOf(v), b.BufferIn(v, b.PlainOf(v))});
  }
  return TryEmit<Norm>(b, d, n.out[0], std::move(args));
}

bool Concat(Builder& b, const BodyNode& n) {
  std::vector<Layout> layouts;
  std::vector<Arg> args;
  bool blocked = false;
  for (uint32_t v : n.in) {
    blocked |= b.Blocked(v);
    layouts.push_back(b.LayoutOf(v));
    if (layouts.back().get_dims() != b.Value(v).dims) return false;
  }
  if (!blocked || n.node.Int("axis") != 1) return false;
  const dnnl::concat::primitive_desc d(Engine(), 1, layouts, UserScratch());
  if (!IsOptimized(d)) return false;
  for (size_t i = 0; i < n.in.size(); i++)
    args.push_back(
        {DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), layouts[i], b.BufferIn(n.in[i], layouts[i])});
  return TryEmit<dnnl::concat>(b, d, n.out[0], std::move(args));
}

bool Reshape(Builder& b, const BodyNode& n) { return b.Alias(n); }

// Ops that oneDNN refuses run by the plugin's own impls.
template <EmitOp F>
bool TryOneDnn(Builder& b, const BodyNode& n) {
  try {
    return F(b, n);
  } catch (const dnnl::error&) {
    return false;
  }
}

struct Row {
  const char* op;
  EmitOp emit;
};
constexpr Row kRows[] = {
    {"max_pool", TryOneDnn<Pool>},
    {"avg_pool", TryOneDnn<Pool>},
    {"reduce_mean", TryOneDnn<ImageMean>},
    {"batch_norm", TryOneDnn<BatchNorm>},
    {"concat", TryOneDnn<Concat>},
    {"conv_grad_x", TryOneDnn<EmitConvGradX>},
    {"conv_grad_w", TryOneDnn<EmitConvGradW>},
    {"reduce_sum", TryOneDnn<EmitChannelSum>},
    {"sum_to", EmitChannelSum},
    {"reshape", Reshape},
    {"identity", Reshape},
    {"exp", OwnUnary},
    {"sigmoid", OwnUnary},
    {"silu", OwnUnary},
    {"gelu", OwnUnary},
};

}  // namespace

EmitOp FindEmitter(const std::string& op) {
  for (const Row& row : kRows)
    if (op == row.op) return row.emit;
  return TryOneDnn<Elementwise>;
}

}  // namespace keel_cpu
