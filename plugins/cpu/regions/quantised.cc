// quantised.cc: see quantised.h.
#include "plugins/cpu/regions/quantised.h"

#include <algorithm>
#include <cmath>

namespace keel_cpu {
namespace {

using Numbers = std::vector<double>;

// The dim of a result that has a scale for each index.
struct Channels {
  size_t count = 1, axis = 0;
};

// The numbers of a constant of f32 or i32: one, or one for each channel of a value of these dims.
bool Read(const BodyValue& v, const Dims& dims, const Channels& channels, Numbers* to) {
  if (v.data == nullptr || (v.dtype != KEEL_F32 && v.dtype != KEEL_I32)) return false;
  const auto n = static_cast<size_t>(v.Count());
  const size_t shift = dims.size() - std::min(dims.size(), v.dims.size());
  if ((n != 1 && n != channels.count) || v.dims.size() > dims.size()) return false;
  for (size_t d = 0; d < v.dims.size(); d++)
    if (v.dims[d] != 1 && d + shift != channels.axis) return false;
  to->clear();
  for (size_t i = 0; i < channels.count; i++) {
    const size_t at = n == 1 ? 0 : i;
    to->push_back(v.dtype == KEEL_F32 ? static_cast<double>(static_cast<const float*>(v.data)[at])
                                      : static_cast<const int32_t*>(v.data)[at]);
  }
  return true;
}
bool Scalar(const Body& body, uint32_t v, double* to) {
  Numbers all;
  if (!Read(body.values[v], {}, {}, &all)) return false;
  *to = all[0];
  return true;
}

// Reads the nodes after a sum, one by one.
class Chain {
 public:
  Chain(const Body& body, uint32_t sum, const Channels& channels)
      : body_(body), dims_(body.values[sum].dims), channels_(channels) {
    made.scale.assign(channels.count, 1);
    made.shift.assign(channels.count, 0);
    made.out = sum;
    stage_ = (made.dtype = body.values[sum].dtype) == KEEL_I32 ? kSum : kReal;
  }
  // False: the node cannot follow.
  bool Add(const BodyNode& n) {
    const BodyValue& to = body_.values[n.out[0]];
    if (n.out.size() != 1 || to.dims != dims_) return false;
    const bool fits = (stage_ == kSum && n.op == "cast" && To(to.dtype, kReal, KEEL_F32)) ||
                      (stage_ <= kReal && Arithmetic(n)) || (stage_ == kReal && Real(n)) ||
                      (stage_ == kRounded && Rounded(n)) ||
                      (stage_ == kClamped && n.op == "cast" && to.dtype == kept_ && To(kept_, kDone, kept_));
    if (fits) made.out = n.out[0];
    return fits;
  }
  // Whether a primitive can end here.
  bool Ends() const { return stage_ <= kReal ? !shifted_sum_ : stage_ == kDone; }
  bool Done() const { return stage_ == kDone; }
  Quantised made;

 private:
  enum Stage : uint8_t { kSum, kReal, kRounded, kClamped, kDone };

  bool To(keel_dt dtype, Stage stage, keel_dt wanted) {
    if (dtype != wanted) return false;
    stage_ = stage;
    made.dtype = dtype;
    shifted_sum_ = false;
    return true;
  }
  bool Arithmetic(const BodyNode& n) {
    if (n.in.size() != 2 || n.in[0] == n.in[1]) return false;
    const bool first = n.in[0] == made.out, adds = n.op == "add" || n.op == "sub";
    Numbers c;
    if (!Read(body_.values[n.in[first ? 1 : 0]], dims_, channels_, &c)) return false;
    if (adds ? made.relu || (n.op == "sub" && !first)
             : stage_ == kSum || (n.op != "mul" && (n.op != "div" || !first)))
      return false;
    for (size_t i = 0; i < channels_.count; i++) {
      const double by = n.op == "mul" ? c[i] : n.op == "div" ? 1 / c[i] : 1;
      if (!(std::fabs(c[i]) < 1e20) || !(std::fabs(by) < 1e20) || (made.relu && !(by > 0))) return false;
      if (adds) made.shift[i] += n.op == "sub" ? -c[i] : c[i];
      made.scale[i] *= by;
      made.shift[i] *= by;
    }
    shifted_sum_ |= adds && stage_ == kSum;
    return true;
  }
  bool Real(const BodyNode& n) {
    double least = 1;
    if (n.op == "round") return To(KEEL_F32, kRounded, KEEL_F32);
    const bool relu = n.op == "relu" || (n.op == "maximum" && Scalar(body_, n.in[1], &least) && least == 0);
    made.relu |= relu;
    return relu;
  }
  bool Rounded(const BodyNode& n) {
    double zero = 0, low = 0, high = 0;
    if (n.op == "add" && made.zero == 0 && Scalar(body_, n.in[1], &zero)) {
      made.zero = static_cast<float>(zero);
      return zero == std::floor(zero) && std::fabs(zero) < 256;
    }
    if (n.op != "clamp" || !Scalar(body_, n.in[1], &low) || !Scalar(body_, n.in[2], &high)) return false;
    kept_ = low == 0 ? KEEL_U8 : KEEL_I8;
    stage_ = kClamped;
    return (low == 0 || low == -128) && high == low + 255;
  }

  const Body& body_;
  const Dims& dims_;
  Channels channels_;
  Stage stage_ = kSum;
  bool shifted_sum_ = false;  // a bias was added to the integers
  keel_dt kept_ = KEEL_U8;
};

bool IsProduct(const BodyNode& n) { return n.op == "matmul_integer"; }

Channels ChannelsOf(const Body& body, const BodyNode& anchor) {
  const Dims& dims = body.values[anchor.out[0]].dims;
  if (anchor.op == "add") return {};
  const size_t axis = IsProduct(anchor) ? dims.size() - 1 : 1;
  return {static_cast<size_t>(std::max<int64_t>(dims[axis], 0)), axis};
}

const BodyNode* MadeBy(const Body& body, uint32_t v, const char* op) {
  const uint32_t n = v == kNone ? kNone : body.values[v].producer;
  return n != kNone && body.nodes[n].op == op ? &body.nodes[n] : nullptr;
}

}  // namespace

Dequantised ReadDequantised(const Body& body, uint32_t value) {
  Dequantised d;
  const auto take = [&](const BodyNode* n) {
    d.nodes.push_back(static_cast<uint32_t>(n - body.nodes.data()));
    return body.values[n->in[0]];
  };
  const BodyNode* mul = MadeBy(body, value, "mul");
  if (mul == nullptr || !Scalar(body, mul->in[1], &d.scale)) return {};
  take(mul);
  uint32_t v = mul->in[0];
  if (const BodyNode* sub = MadeBy(body, v, "sub")) {
    if (!Scalar(body, sub->in[1], &d.zero)) return {};
    take(sub);
    v = sub->in[0];
  }
  const BodyNode* cast = MadeBy(body, v, "cast");
  if (cast == nullptr || body.values[v].dims != body.values[value].dims) return {};
  take(cast);
  d.q = cast->in[0];
  const keel_dt dtype = body.values[d.q].dtype;
  if (dtype != KEEL_U8 && dtype != KEEL_I8) return {};
  const auto shared = [&](uint32_t n) {
    const BodyValue& made = body.values[body.nodes[n].out[0]];
    return made.result != kNone || made.users.size() != 1;
  };
  if (std::ranges::any_of(d.nodes, shared)) d.nodes.clear();
  return d;
}

bool FindQuantised(const Body& body, uint32_t anchor, const std::vector<bool>& taken, Group* group) {
  const BodyNode& a = body.nodes[anchor];
  const bool sum = a.op == "add" && body.values[a.out[0]].dtype == KEEL_F32;
  if (a.op != "conv_integer" && !IsProduct(a) && !sum) return false;
  *group = {anchor, {}, {}};
  for (size_t i = 0; sum && i < 2; i++) {
    const Dequantised d = ReadDequantised(body, a.in[i]);
    if (d.q == kNone || body.values[d.q].dims != body.values[a.out[0]].dims) return false;
    group->before.insert(group->before.end(), d.nodes.begin(), d.nodes.end());
  }
  Chain chain(body, a.out[0], ChannelsOf(body, a));
  std::vector<uint32_t> nodes;
  for (;;) {
    const BodyValue& v = body.values[chain.made.out];
    if (v.result != kNone || v.users.size() != 1) break;
    const uint32_t next = v.users[0];
    if (taken[next] || !chain.Add(body.nodes[next])) break;
    nodes.push_back(next);
    if (chain.Ends()) group->nodes = nodes;
  }
  return !sum || chain.Done();
}

bool IsQuantisedProduct(const Body& body) {
  if (body.nodes.empty() || !IsProduct(body.nodes[0])) return false;
  const BodyValue& weights = body.values[body.nodes[0].in[1]];
  Group group;
  return weights.data != nullptr && weights.Count() > 0 &&
         FindQuantised(body, 0, std::vector<bool>(body.nodes.size()), &group) && !group.nodes.empty() &&
         group.nodes.size() + 1 == body.nodes.size();
}

Quantised ReadQuantised(const Body& body, const Group& group) {
  const BodyNode& a = body.nodes[group.anchor];
  Chain chain(body, a.out[0], ChannelsOf(body, a));
  for (uint32_t n : group.nodes) chain.Add(body.nodes[n]);
  return std::move(chain.made);
}

}  // namespace keel_cpu
