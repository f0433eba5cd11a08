// integers.cc: the groups of quantised.h as oneDNN primitives, or by conv/integer_images.cc and
// matmul/int8_matmul.cc.
//
// Scales of both operands and of the result are one scale per channel; a zero point of the result is added
// after its own rounding, as the graph does. Images are channels last.
#include <limits>

#include "plugins/cpu/conv/integer.h"
#include "plugins/cpu/regions/ops.h"
#include "plugins/cpu/regions/quantised.h"

namespace keel_cpu {
namespace {

using Forward = dnnl::convolution_forward;
using dnnl::algorithm;

std::vector<float> Floats(const std::vector<double>& from) { return {from.begin(), from.end()}; }

bool Any(const std::vector<double>& numbers) {
  return std::ranges::any_of(numbers, [](double x) { return x != 0; });
}

// Appends the steps after scale and shift. Saturation to u8 does the work of relu where the zero point is 0.
void Finish(const Quantised& q, dnnl::post_ops* ops) {
  if (q.relu && (q.dtype != KEEL_U8 || q.zero != 0)) ops->append_eltwise(algorithm::eltwise_relu, 0, 0);
  if (q.zero == 0) return;
  // x + zero rounds halves to even as x does only if zero is even.
  if (static_cast<int>(q.zero) % 2 != 0) ops->append_eltwise(algorithm::eltwise_round, 0, 0);
  ops->append_eltwise(algorithm::eltwise_linear, 1, q.zero);
}

Int8Result ResultOf(const Quantised& q) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Int8Result r = {q.dtype, -kInfinity, kInfinity, 0, Floats(q.scale), Floats(q.shift)};
  if (q.dtype != KEEL_F32) {
    r.zero = static_cast<int32_t>(q.zero);
    r.low = (q.dtype == KEEL_U8 ? 0.0F : -128.0F) - q.zero;
    r.high = r.low + 255;
  }
  if (q.relu) r.low = std::max(r.low, 0.0F);
  return r;
}

// The convolution without its operands' buffers.
struct IntegerConv {
  Conv s;
  Geometry g;
  IntegerWeights weights;
  Layout bias;
  dnnl::primitive_attr attr;
  Forward::primitive_desc d;
};

dnnl::primitive_attr Attr(const IntegerConv& c, const Quantised& q) {
  dnnl::primitive_attr attr = UserScratch();
  if (q.dtype != KEEL_I32) attr.set_scales_mask(DNNL_ARG_WEIGHTS, c.s.groups > 1 ? 3 : 1);
  if (c.weights.x_zero != 0) attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
  dnnl::post_ops ops;
  Finish(q, &ops);
  attr.set_post_ops(ops);
  return attr;
}

bool Describe(Builder& b, const BodyNode& node, const Quantised& q, IntegerConv* c) {
  if (!ServesOneDnn(c->weights)) return false;
  if (q.dtype != KEEL_I32 && Any(q.shift)) c->bias = Plain({c->s.o});
  c->attr = Attr(*c, q);
  c->d = Forward::primitive_desc(
      Engine(), dnnl::prop_kind::forward_inference, algorithm::convolution_direct,
      ChannelsLast(c->g.x, TypeOf(b.Value(node.in[0]).dtype)), AnyLayout(c->g.w, dnnl::memory::data_type::s8),
      c->bias, ChannelsLast(c->g.y, TypeOf(q.dtype)), c->g.stride, c->g.dil, c->g.lo, c->g.hi, c->attr);
  return IsOptimized(c->d);
}

int Weights(Builder& b, const BodyNode& node, const IntegerConv& c) {
  const Layout plain = Plain(c.g.w, dnnl::memory::data_type::s8);
  const auto make = [&](Bytes* own) -> const void* {
    *own = Allocate(c.weights.w.size());
    std::copy(c.weights.w.begin(), c.weights.w.end(), reinterpret_cast<int8_t*>(own->get()));
    return own->get();
  };
  const Layout wanted = c.d.weights_desc();
  return b.Constant(b.constants->Get(b.Value(node.in[1]).data, plain, wanted, make), wanted.get_size());
}

Arg Numbers(Builder& b, int id, const std::vector<float>& numbers) {
  const auto n = static_cast<int64_t>(numbers.size());
  return {id, Plain({n}), b.Constant(b.constants->Vector(numbers), numbers.size() * sizeof(float))};
}

// A launch of the plugin's own loops.
void KeepOwnLoops(Builder& b, const BodyNode& node, const Quantised& q, const IntegerConv& c,
                  keel_launch* launch) {
  const bool is_signed = b.Value(node.in[0]).dtype == KEEL_I8;
  Int8Result result = ResultOf(q);
  if (ServesIntegerDepthwise(c.s, c.weights, result))
    return KeepIntegerDepthwise(c.s, c.weights, is_signed, std::move(result), launch);
  const uint64_t pixel_bytes = PixelPanelBytes(c.s, c.weights.w);
  const bool by_pixels = pixel_bytes > 0;
  const uint64_t bytes = by_pixels ? pixel_bytes : IntegerPanelBytes(c.s);
  const Layout panels = Plain({static_cast<int64_t>(bytes)}, dnnl::memory::data_type::u8);
  const void* packed = b.constants->Get(&node, panels, panels, [&](Bytes* own) {
    *own = AllocateConstant(bytes);
    (by_pixels ? PackPixelPanels : PackIntegerPanels)(c.s, c.weights.w, own->get());
    return own->get();
  });
  const auto keep = by_pixels ? KeepIntegerPixels : KeepIntegerImages;
  keep(c.s, c.weights, is_signed, packed, std::move(result), launch);
}

void EmitOwnLoops(Builder& b, const BodyNode& node, const Quantised& q, const IntegerConv& c) {
  const int from = b.BufferIn(node.in[0], ChannelsLast(c.g.x, TypeOf(b.Value(node.in[0]).dtype))),
            to = b.ResultBuffer(q.out, ChannelsLast(c.g.y, TypeOf(q.dtype)));
  auto own = std::make_unique<OwnLaunch>();
  KeepOwnLoops(b, node, q, c, &own->launch);
  if (!c.weights.x_zero_varies) return b.EmitOwn(std::move(own), {node.in[0]}, {q.out}, {from, to});
  const uint32_t zero = node.in[2];
  b.EmitOwn(std::move(own), {node.in[0], zero}, {q.out}, {from, b.BufferIn(zero, b.PlainOf(zero)), to});
}

bool EmitConv(Builder& b, const BodyNode& node, const Quantised& q) {
  IntegerConv c;
  c.s = ReadConv(node.node, node.node.In(0), node.node.In(1), node.node.Out(0));
  c.g = Describe(c.s);
  if (!c.g.fits || !ServesIntegers(node.node)) return false;
  c.weights = ReadIntegerWeights(node.node);
  if (!Describe(b, node, q, &c)) {
    EmitOwnLoops(b, node, q, c);
    return true;
  }
  std::vector<Arg> fixed = {{DNNL_ARG_WEIGHTS, c.d.weights_desc(), Weights(b, node, c)}};
  if (!c.bias.is_zero()) fixed.push_back(Numbers(b, DNNL_ARG_BIAS, Floats(q.shift)));
  if (q.dtype != KEEL_I32)
    fixed.push_back(Numbers(b, DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, Floats(q.scale)));
  if (c.weights.x_zero != 0)
    fixed.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, Plain({1}, dnnl::memory::data_type::s32),
                     b.Constant(b.constants->Integer(c.weights.x_zero), sizeof(int32_t))});
  const Arg x = {DNNL_ARG_SRC, c.d.src_desc(), b.BufferIn(node.in[0], c.d.src_desc())},
            y = {DNNL_ARG_DST, c.d.dst_desc(), b.ResultBuffer(q.out, c.d.dst_desc())};
  const auto emit = [&](const Forward::primitive_desc& d, const Arg& from, const Arg& to) {
    std::vector<Arg> args = fixed;
    args.insert(args.end(), {from, to});
    b.Emit<Forward>(d, std::move(args));
  };
  Parts<Forward> cut = ConvParts(c.s, c.g, c.d, c.bias);
  if (cut.parts.size() < 2) {
    emit(c.d, x, y);
    return true;
  }
  for (const auto& p : cut.parts)
    emit(cut.make(p, c.attr), {x.id, p.src, x.buffer, p.src_at}, {y.id, p.out, y.buffer, p.out_at});
  return true;
}

// round(relu(a * scale + b * scale + shift)) + zero
bool EmitSum(Builder& b, const BodyNode& node, const Quantised& q) {
  const Dequantised first = ReadDequantised(b.body, node.in[0]), second = ReadDequantised(b.body, node.in[1]);
  const double k = q.scale[0],
               shift = q.shift[0] - k * (first.scale * first.zero + second.scale * second.zero);
  const Layout layout = b.LayoutOf(first.q);
  if (layout.get_dims() != b.Value(first.q).dims || b.LayoutOf(second.q).get_dims() != layout.get_dims())
    return false;
  const auto typed = [&](keel_dt dtype) {
    return Strided(layout.get_dims(), layout.get_strides(), TypeOf(dtype));
  };
  const Layout other = typed(b.Value(second.q).dtype), made = typed(q.dtype);
  dnnl::post_ops ops;
  if (shift != 0) ops.append_eltwise(algorithm::eltwise_linear, 1, static_cast<float>(shift));
  Finish(q, &ops);
  dnnl::primitive_attr attr = UserScratch();
  for (int id : {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1}) attr.set_scales_mask(id, 0);
  attr.set_post_ops(ops);
  const dnnl::binary::primitive_desc d(Engine(), algorithm::binary_add, layout, other, made, attr);
  if (!IsOptimized(d)) return false;
  const auto scale = [&](int id, const Dequantised& from) {
    return Numbers(b, DNNL_ARG_ATTR_SCALES | id, {static_cast<float>(k * from.scale)});
  };
  b.Emit<dnnl::binary>(d, {{DNNL_ARG_SRC_0, layout, b.BufferIn(first.q, layout)},
                           {DNNL_ARG_SRC_1, other, b.BufferIn(second.q, other)},
                           scale(DNNL_ARG_SRC_0, first),
                           scale(DNNL_ARG_SRC_1, second),
                           {DNNL_ARG_DST, made, b.ResultBuffer(q.out, made)}});
  return true;
}

// A product by matmul/int8_matmul.cc.
bool EmitProduct(Builder& b, const BodyNode& node, const Quantised& q) {
  auto own = std::make_unique<OwnLaunch>();
  KeepInt8(node.node, ResultOf(q), &own->launch);
  std::vector<int> buffers;
  for (uint32_t v : node.in) buffers.push_back(v == kNone ? -1 : b.BufferIn(v, b.PlainOf(v)));
  buffers.push_back(b.ResultBuffer(q.out, b.PlainOf(q.out)));
  b.EmitOwn(std::move(own), node.in, {q.out}, std::move(buffers));
  return true;
}

struct Row {
  const char* anchor;
  bool (*emit)(Builder& b, const BodyNode& anchor, const Quantised& q);
};
constexpr Row kRows[] = {{"conv_integer", EmitConv}, {"matmul_integer", EmitProduct}, {"add", EmitSum}};

}  // namespace

bool EmitQuantised(Builder& b, const Group& group) {
  const BodyNode& anchor = b.body.nodes[group.anchor];
  const Quantised q = ReadQuantised(b.body, group);
  try {
    for (const Row& row : kRows)
      if (anchor.op == row.anchor) return row.emit(b, anchor, q);
    return false;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace keel_cpu
