// fuse.cc: see fuse.h. Also maps elementwise ops to oneDNN algorithms.
#include "plugins/cpu/regions/fuse.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keel_cpu {
namespace {

using dnnl::algorithm;

// Ops that oneDNN computes like the plugin's loops: up to rounding, with equal infinities and signs of zero
// and, unless marked, equal NaN. log is missing (4 % error for denormals), as are softplus (negative at -20),
// neg (of +0), exp (0 in place of denormals), and sigmoid, silu and gelu, whose error is relative to the
// operand: gelu of -5 may be 0.
struct Unary {
  const char* op;
  algorithm fn;
  float alpha = 0, beta = 0;
  bool loses_nan = false;
};
constexpr Unary kUnary[] = {
    {"relu", algorithm::eltwise_relu, 0, 0, true},
    {"tanh", algorithm::eltwise_tanh},
    {"abs", algorithm::eltwise_abs},
    {"square", algorithm::eltwise_square},
    {"sqrt", algorithm::eltwise_sqrt},
    {"round", algorithm::eltwise_round},
};
struct Binary {
  const char* op;
  algorithm fn;
  bool commutes, loses_nan = false;
};
constexpr Binary kBinary[] = {
    {"add", algorithm::binary_add, true},           {"sub", algorithm::binary_sub, false},
    {"mul", algorithm::binary_mul, true},           {"div", algorithm::binary_div, false},
    {"maximum", algorithm::binary_max, true, true}, {"minimum", algorithm::binary_min, true, true},
};
template <class Row, size_t kRows>
const Row* Find(const Row (&rows)[kRows], const std::string& op) {
  for (const Row& row : rows)
    if (op == row.op) return &row;
  return nullptr;
}

// Reads a constant f32 scalar.
bool Scalar(const BodyValue& v, float* out) {
  if (v.data == nullptr || v.dtype != KEEL_F32 || v.Count() != 1) return false;
  *out = *static_cast<const float*>(v.data);
  return true;
}

bool Clip(float lo, float hi, std::vector<PostOp>* out) {
  if (!(lo <= hi)) return false;
  out->push_back({PostOp::kUnary, algorithm::eltwise_clip, lo, hi, kNone, kNone, true});
  return true;
}

bool Clamp(const Body& body, const BodyNode& n, uint32_t in, std::vector<PostOp>* out) {
  float lo = 0, hi = 0;
  return n.in[0] == in && Scalar(body.values[n.in[1]], &lo) && Scalar(body.values[n.in[2]], &hi) &&
         Clip(lo, hi, out);
}

bool Unaries(const BodyNode& n, std::vector<PostOp>* out) {
  if (n.op == "leaky_relu") {
    const float alpha = static_cast<float>(n.node.Real("alpha"));
    out->push_back({PostOp::kUnary, algorithm::eltwise_relu, alpha});
    return alpha != 0;
  }
  const Unary* u = Find(kUnary, n.op);
  if (u != nullptr) out->push_back({PostOp::kUnary, u->fn, u->alpha, u->beta, kNone, kNone, u->loses_nan});
  return u != nullptr;
}

// Functions of `in` with a constant scalar as the other operand. A product must not add +0, which would
// change -0 to +0; with a factor of -1 oneDNN adds it anyway.
bool WithScalar(const BodyNode& n, float c, bool first, std::vector<PostOp>* out) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (n.op == "maximum") return Clip(c, kInfinity, out);
  if (n.op == "minimum") return Clip(-kInfinity, c, out);
  float alpha = 1, beta = -0.0f;
  if (n.op == "add")
    beta = c;
  else if (n.op == "mul" && c != -1)
    alpha = c;
  else if (n.op == "sub")
    alpha = first ? 1.0f : -1.0f, beta = first ? -c : c;
  else
    return false;
  out->push_back({PostOp::kUnary, algorithm::eltwise_linear, alpha, beta});
  return true;
}

bool Binaries(const Body& body, uint32_t node, uint32_t in, std::vector<PostOp>* out) {
  const BodyNode& n = body.nodes[node];
  const Binary* fn = Find(kBinary, n.op);
  if (fn == nullptr || n.in[0] == n.in[1]) return false;
  const bool first = n.in[0] == in;
  const uint32_t other = first ? n.in[1] : n.in[0];
  float c = 0;
  if (Scalar(body.values[other], &c) && WithScalar(n, c, first, out)) return true;
  if (!first && !fn->commutes) {
    if (n.op != "sub") return false;
    out->push_back({PostOp::kUnary, algorithm::eltwise_linear, -1, 0});
    out->push_back({PostOp::kBinary, algorithm::binary_add, 0, 0, other, node});
    return true;
  }
  out->push_back({PostOp::kBinary, fn->fn, 0, 0, other, node, fn->loses_nan});
  return true;
}

// ---- constants per channel, which are folded into weights and bias

size_t ChannelAxis(const BodyNode& anchor, const BodyValue& out) {
  return anchor.op == "conv" ? 1 : out.dims.size() - 1;
}

// Reads a constant with one number per channel.
bool Channels(const BodyValue& v, const Dims& out, size_t axis, std::vector<float>* to) {
  const int64_t n = out[axis];
  if (v.data == nullptr || v.dtype != KEEL_F32 || v.dims.size() > out.size()) return false;
  const float* p = static_cast<const float*>(v.data);
  if (v.Count() == 1) {
    to->assign(static_cast<size_t>(n), *p);
    return true;
  }
  const size_t shift = out.size() - v.dims.size();
  for (size_t d = 0; d < v.dims.size(); d++)
    if (v.dims[d] != (d + shift == axis ? n : 1)) return false;
  to->assign(p, p + n);
  return v.Count() == n;
}

struct Affine {
  std::vector<double> scale, shift;  // rounded once, when all are folded
  bool scaled = false;
};

bool BatchNorm(const Body& body, const BodyNode& n, Affine* to) {
  const float* p[4];
  for (size_t i = 0; i < 4; i++) {
    p[i] = static_cast<const float*>(body.values[n.in[i + 1]].data);
    if (p[i] == nullptr) return false;
  }
  const double eps = n.node.Real("eps");
  for (size_t c = 0; c < to->scale.size(); c++) {
    const double k = p[0][c] / std::sqrt(static_cast<double>(p[3][c]) + eps);
    to->scale[c] *= k;
    to->shift[c] = (to->shift[c] - static_cast<double>(p[2][c])) * k + p[1][c];
  }
  to->scaled = true;
  return true;
}

// Folds node n, whose operand `in` is affine so far, into the affine function.
bool Absorb(const Body& body, const BodyNode& n, uint32_t in, const Dims& dims, size_t axis, Affine* a) {
  if (n.op == "batch_norm") return axis == 1 && BatchNorm(body, n, a);
  if (n.op == "neg") {
    for (double& s : a->scale) s = -s;
    for (double& s : a->shift) s = -s;
    return a->scaled = true;
  }
  if (n.op != "add" && n.op != "sub" && n.op != "mul" && n.op != "div") return false;
  const bool first = n.in[0] == in;
  std::vector<float> c;
  if (!Channels(body.values[first ? n.in[1] : n.in[0]], dims, axis, &c)) return false;
  if (n.op == "div" && !first) return false;
  const bool negate = n.op == "sub" && !first;
  for (size_t i = 0; i < c.size(); i++) {
    double factor = negate ? -1 : 1, term = n.op == "sub" && first ? -c[i] : c[i];
    if (n.op == "mul") factor = c[i], term = 0;
    if (n.op == "div") factor = 1.0 / c[i], term = 0;
    a->scale[i] *= factor;
    a->shift[i] = a->shift[i] * factor + term;
  }
  a->scaled |= negate || n.op == "mul" || n.op == "div";
  return true;
}

// Infinity times a weight of 0 would be a NaN that the graph does not have.
bool Finite(const std::vector<double>& scale) {
  return std::ranges::all_of(scale, [](double x) { return std::isfinite(static_cast<float>(x)); });
}

// Whether a scale can be folded into the weights.
bool Scalable(const Body& body, const BodyNode& anchor) {
  const BodyValue& w = body.values[anchor.in[1]];
  return w.data != nullptr && w.dtype == KEEL_F32 && (anchor.op == "conv" || w.dims.size() == 2);
}

// An anchor and the nodes after it; grows node by node.
class Chain {
 public:
  Chain(const Body& body, const BodyNode& anchor)
      : body_(body), anchor_(anchor), made_(body.values[anchor.out[0]]), axis_(ChannelAxis(anchor, made_)) {
    const size_t channels = static_cast<size_t>(made_.dims[axis_]);
    affine_ = {std::vector<double>(channels, 1), std::vector<double>(channels)};
    absorbs_ = made_.dtype == KEEL_F32;
    recipe_.out = anchor.out[0];
  }
  // False, without a change: the node cannot be part of the primitive.
  bool Add(uint32_t node) {
    const BodyNode& n = body_.nodes[node];
    if (!SameShape(n)) return false;
    Affine next = affine_;
    const bool absorbed = absorbs_ && Absorb(body_, n, recipe_.out, made_.dims, axis_, &next) &&
                          Finite(next.scale) && (!next.scaled || Scalable(body_, anchor_));
    std::vector<PostOp> more;
    if (!absorbed && !PostOpsOf(body_, node, recipe_.out, &more)) return false;
    if (absorbed) affine_ = std::move(next);
    any_ |= absorbed;
    absorbs_ = absorbed;
    recipe_.post.insert(recipe_.post.end(), more.begin(), more.end());
    recipe_.out = n.out[0];
    return true;
  }
  Recipe Finish() {
    if (affine_.scaled) recipe_.scale = std::move(affine_.scale);
    if (any_) recipe_.shift.assign(affine_.shift.begin(), affine_.shift.end());
    return std::move(recipe_);
  }
  uint32_t Out() const { return recipe_.out; }

 private:
  bool SameShape(const BodyNode& n) const {
    const BodyValue& to = body_.values[n.out[0]];
    if (n.out.size() != 1 || to.dims != made_.dims || to.dtype != made_.dtype) return false;
    for (uint32_t i : n.in)
      if (i == kNone || body_.values[i].dtype != made_.dtype) return false;
    return true;
  }

  const Body& body_;
  const BodyNode& anchor_;
  const BodyValue& made_;
  size_t axis_;
  Affine affine_;
  bool absorbs_ = true, any_ = false;
  Recipe recipe_;
};

}  // namespace

bool IsContraction(const std::string& op) { return op == "conv" || op == "matmul"; }
bool IsConvGrad(const std::string& op) { return op == "conv_grad_x" || op == "conv_grad_w"; }

bool PostOpsOf(const Body& body, uint32_t node, uint32_t in, std::vector<PostOp>* out) {
  const BodyNode& n = body.nodes[node];
  if (n.op == "clamp") return Clamp(body, n, in, out);
  return n.in.size() == 1 ? Unaries(n, out) : n.in.size() == 2 && Binaries(body, node, in, out);
}

Group GroupAfter(const Body& body, uint32_t anchor, const std::vector<bool>& taken) {
  Group g = {anchor, {}, {}};
  Chain chain(body, body.nodes[anchor]);
  for (;;) {
    const BodyValue& value = body.values[chain.Out()];
    if (value.result != kNone || value.users.size() != 1) break;
    const uint32_t next = value.users[0];
    if (taken[next] || !chain.Add(next)) break;
    g.nodes.push_back(next);
  }
  return g;
}

Recipe MakeRecipe(const Body& body, const Group& group, size_t count) {
  Chain chain(body, body.nodes[group.anchor]);
  for (size_t i = 0; i < count; i++) chain.Add(group.nodes[i]);
  return chain.Finish();
}

}  // namespace keel_cpu
