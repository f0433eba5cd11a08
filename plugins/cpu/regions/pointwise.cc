// pointwise.cc: a convolution with a 1x1 window between plain images at the borders of a region: the product
// of the weights and each image, after a stride's cells are gathered. oneDNN's convolution would change the
// layout of both images.
#include <algorithm>

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/conv/pointwise.h"
#include "plugins/cpu/regions/ops.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

using Matmul = dnnl::matmul;

// Below, the product takes up to 1.3 of the convolution's time: 49 pixels are three vectors and one more.
constexpr int64_t kFewPixels = 128;
// Below AVX-512, 24 channels took 1.5 of its time, 64 as long, 256 0.62.
constexpr int64_t kFewChannels = 64;

bool IsWorthwhile(const Conv& s) {
  return s.w.Cells(s.w.out) >= kFewPixels && (SimdLevel() == 2 || s.c >= kFewChannels);
}

bool IsPointwise(const Conv& s, const Geometry& g) {
  bool yes = s.groups == 1 && !IsPadded(g);
  for (int d = 0; d < s.w.rank; d++) yes &= s.w.window[d] == 1;
  return yes;
}

bool HasStride(const Conv& s) {
  return std::any_of(s.w.stride, s.w.stride + s.w.rank, [](int64_t step) { return step > 1; });
}
// The buffer of the seen cells of each image.
int SeenCells(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s) {
  const Layout image = b.PlainOf(node.in[0]);
  const int in = b.BufferIn(node.in[0], image);
  if (!HasStride(s)) return in;
  Dims dims = image.get_dims(), steps = image.get_strides();
  for (int d = 0; d < s.w.rank; d++) {
    const auto i = static_cast<size_t>(d + 2);  // after the image and the channel
    dims[i] = s.w.out[d], steps[i] *= s.w.stride[d];
  }
  const Layout seen = Plain(dims);
  const int out = b.Scratch(seen.get_size());
  auto made = std::make_unique<OwnLaunch>();
  KeepLayoutCopy(dims, steps, seen.get_strides(), &made->launch);
  b.EmitOwn(std::move(made), {node.in[0]}, {r.out}, {in, out});
  return out;
}

// The bias is a post-op, as oneDNN has no optimised code for one of rows.
dnnl::primitive_attr AttrOf(const Recipe& r, const Layout& bias) {
  dnnl::post_ops ops;
  if (!r.shift.empty()) ops.append_binary(dnnl::algorithm::binary_add, bias);
  for (const PostOp& p : r.post) ops.append_eltwise(p.algorithm, p.alpha, p.beta);
  dnnl::primitive_attr attr = UserScratch();
  attr.set_post_ops(ops);
  return attr;
}

// By the kernels of the own products.
bool EmitOwn(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s) {
  const PointwiseShape shape = {s.n, s.c, s.o, s.w.Cells(s.w.out)};
  const PointwiseWay way = WayOf(shape, b.Value(node.in[1]).data != nullptr);
  if (way == PointwiseWay::kOther || !r.post.empty()) return false;
  const int64_t panel = WeightPanel();
  const Dims dims = {s.o / panel, panel, s.c};
  const bool packed = way == PointwiseWay::kWeightPanels;
  const Layout plain = packed ? Plain(dims) : Plain({s.o, s.c});
  const int weights =
      Weights(b, node, r, plain, packed ? Strided(dims, {s.c * panel, 1, panel}) : plain, {s.c, s.o});
  auto made = std::make_unique<OwnLaunch>();
  KeepPointwise(shape, way, r.shift, &made->launch);
  const int in = SeenCells(b, node, r, s);
  b.EmitOwn(std::move(made), {node.in[0], node.in[1]}, {r.out},
            {in, weights, b.ResultBuffer(r.out, b.PlainOf(r.out))});
  b.Explain(node, std::string("own products: 1x1 windows of plain images, by panels of ") +
                      (packed ? "weights" : "pixels"));
  return true;
}

struct Piece {
  Matmul::primitive_desc d;
  uint64_t x_at, y_at;
};
// Long work is split by images and pixels. None: oneDNN has no optimised code for a piece.
std::vector<Piece> Cut(const Conv& s, const Layout& x, const Layout& w, const Layout& y,
                       const dnnl::primitive_attr& attr) {
  std::vector<Piece> pieces;
  for (const Box& box : Boxes({s.n, y.get_dims()[2]}, s.Work())) {
    Piece p;
    const Layout in = PartOf(x, {{box.lo[0], 0, box.lo[1]}, {box.size[0], s.c, box.size[1]}}, 3, &p.x_at);
    const Layout out = PartOf(y, {{box.lo[0], 0, box.lo[1]}, {box.size[0], s.o, box.size[1]}}, 3, &p.y_at);
    p.d = Matmul::primitive_desc(Engine(), w, in, out, attr);
    if (!IsOptimized(p.d)) return {};
    pieces.push_back(std::move(p));
  }
  return pieces;
}

}  // namespace

bool IsAtBorders(const Builder& b, const BodyNode& node, const Recipe& r) {
  const BodyValue &x = b.Value(node.in[0]), &y = b.Value(r.out);
  return x.producer == kNone && !b.Blocked(node.in[0]) && y.result != kNone && y.users.empty() &&
         std::ranges::all_of(r.post, [](const PostOp& p) { return p.kind == PostOp::kUnary; });
}

bool EmitPointwise(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s, const Geometry& g) {
  if (b.channels_last || !IsPointwise(s, g) || !IsAtBorders(b, node, r)) return false;
  if (EmitOwn(b, node, r, s)) return true;
  if (!IsWorthwhile(s)) return false;
  if (!std::ranges::all_of(r.post, [&](const PostOp& p) { return b.Allows(p); })) return false;
  const int64_t pixels = s.w.Cells(s.w.out);
  const Layout x = Plain({s.n, s.c, pixels}), w = Plain({1, s.o, s.c}), y = Plain({s.n, s.o, pixels});
  const Layout bias = Plain({1, s.o, 1});
  std::vector<Piece> pieces;
  try {
    pieces = Cut(s, x, w, y, AttrOf(r, bias));
  } catch (const dnnl::error&) {
  }
  if (pieces.empty()) return false;
  const int weights = Weights(b, node, r, w, w, {s.c, s.o}), shift = BiasOf(b, r);
  const int in = SeenCells(b, node, r, s), out = b.ResultBuffer(r.out, y);
  for (const Piece& p : pieces) {
    std::vector<Arg> args = {{DNNL_ARG_SRC, w, weights},
                             {DNNL_ARG_WEIGHTS, p.d.weights_desc(), in, p.x_at},
                             {DNNL_ARG_DST, p.d.dst_desc(), out, p.y_at}};
    if (shift >= 0) args.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, bias, shift});
    b.Emit<Matmul>(p.d, std::move(args));
  }
  b.Explain(node, "oneDNN product: 1x1 windows of plain images");
  return true;
}

}  // namespace keel_cpu
