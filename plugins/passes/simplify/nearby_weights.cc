// nearby_weights.cc: folds per-channel scales and shifts into weights and one bias.
//
// A Root is a node with constant weights: conv, conv_grad_x, matmul or batch_norm. A chain of add, sub, mul,
// div with constants and of batch_norm may follow, each the only user of the previous one. The chain computes
// y * scale + shift per channel (an Affine); scale is folded into the weights, shift becomes one add. A mul
// or div before the root is folded into the weights as well.
#include <cmath>

#include "plugins/passes/edit/numbers.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

using Numbers = std::vector<double>;

// One number per channel, from a constant whose dim at `back` from the end is `channels` and whose others are
// 1, or all are 1.
std::optional<Numbers> per_channel(const Edit& e, keel_value v, size_t channels, size_t back) {
  if (v == KEEL_NO_VALUE) return std::nullopt;
  const Type t = e.type(v);
  const int64_t count = t.count();
  if (t.data == nullptr || (count != 1 && count != static_cast<int64_t>(channels))) return std::nullopt;
  for (size_t i = 0; i < t.rank(); i++)
    if (t.dims[i] != 1 && i + back + 1 != t.rank()) return std::nullopt;
  const std::optional<Numbers> all = doubles(e, v);
  return all && count == 1 ? Numbers(channels, (*all)[0]) : all;
}

// Weights are w[p, q, ...]; of a batch_norm w[p]. The result's channels are p's, or with groups q's.
struct Root {
  NodeId node = kNone;
  Dims dims;  // of the weights
  size_t p = 1, q = 1, inner = 1, groups = 1;
  bool outputs_first = true;
  size_t back = 0;                       // position of the channels in operand and result dims, from the end
  size_t channels = 0, in_channels = 0;  // 0: a preceding scale is not folded

  size_t first(size_t element) const { return element / inner / q; }
  size_t second(size_t element) const { return first(element) / (p / groups) * q + element / inner % q; }
  size_t out_of(size_t element) const { return outputs_first ? first(element) : second(element); }
  size_t in_of(size_t element) const { return outputs_first ? second(element) : first(element); }
};

std::optional<Root> root_at(const Edit& e, NodeId n) {
  const Type w = e.type(e.in(n, 1));
  const bool wide = w.dtype == KEEL_F32 || w.dtype == KEEL_F64;
  if (w.data == nullptr || !wide || w.count() <= 0) return std::nullopt;
  Root r;
  r.node = n;
  r.dims = w.dims;
  const bool is_matmul = e.is(n, "matmul"), is_norm = e.is(n, "batch_norm");
  if (is_matmul && w.rank() != 2) return std::nullopt;
  r.p = static_cast<size_t>(w.dims[0]);
  if (!is_norm) r.q = static_cast<size_t>(w.dims[1]);
  r.inner = static_cast<size_t>(w.count()) / r.p / r.q;
  if (!is_matmul && !is_norm) r.groups = static_cast<size_t>(e.integer(n, "groups"));
  r.outputs_first = is_matmul ? e.integer(n, "tb") != 0 : !e.is(n, "conv_grad_x");
  r.back = is_matmul ? 0 : e.type(e.out(n)).rank() - 2;
  r.channels = r.outputs_first ? r.p : r.q * r.groups;
  const bool reads_plain = !is_norm && !(is_matmul && e.integer(n, "ta") != 0);
  if (reads_plain) r.in_channels = r.outputs_first ? r.q * r.groups : r.p;
  return r;
}

struct Affine {
  Numbers scale, shift;
  bool scales = false, shifts = false;
  size_t steps = 0;
  keel_value end = KEEL_NO_VALUE;  // the last step's result

  void times(size_t i, double k) {
    scale[i] *= k;
    shift[i] *= k;
  }
};

bool take_batch_norm(const Edit& e, NodeId n, size_t channels, Affine* a) {
  std::optional<Numbers> p[4];
  for (size_t i = 0; i < 4; i++)
    if (!(p[i] = per_channel(e, e.in(n, i + 1), channels, 0))) return false;
  const double eps = e.number(n, "eps");
  for (size_t i = 0; i < channels; i++) {
    const double k = (*p[0])[i] / std::sqrt((*p[3])[i] + eps);
    a->times(i, k);
    a->shift[i] += (*p[1])[i] - (*p[2])[i] * k;
  }
  a->scales = a->shifts = true;
  return true;
}

bool take_arithmetic(const Edit& e, NodeId n, keel_value y, const Root& r, Affine* a) {
  const std::string_view op = e.op(n);
  const bool left = e.in(n, 0) == y;
  const std::optional<Numbers> c = per_channel(e, e.in(n, left ? 1 : 0), r.channels, r.back);
  if (!c || (op == "div" && !left) || !e.same_type(y, e.out(n))) return false;
  for (size_t i = 0; i < r.channels; i++) {
    if (op == "mul") a->times(i, (*c)[i]);
    if (op == "div") a->times(i, 1 / (*c)[i]);
    if (op == "sub" && !left) a->times(i, -1);
    if (op == "add" || op == "sub") a->shift[i] += op == "sub" && left ? -(*c)[i] : (*c)[i];
  }
  const bool additive = op == "add" || op == "sub";
  a->shifts = a->shifts || additive;
  a->scales = a->scales || !additive || !left;
  return true;
}

bool take(const Edit& e, NodeId n, keel_value y, const Root& r, Affine* a) {
  const std::string_view op = e.op(n);
  if (op == "batch_norm") return e.in(n, 0) == y && take_batch_norm(e, n, r.channels, a);
  if (op != "add" && op != "sub" && op != "mul" && op != "div") return false;
  return take_arithmetic(e, n, y, r, a);
}

Affine chain_after(const Edit& e, const Root& r) {
  Affine a = {Numbers(r.channels, 1), Numbers(r.channels, 0)};
  a.end = e.out(r.node);
  while (e.single_use(a.end)) {
    const NodeId next = e.users(a.end)[0];
    Affine longer = a;
    if (e.outs(next).size() != 1 || !take(e, next, a.end, r, &longer)) break;
    a = std::move(longer);
    a.end = e.out(next);
    a.steps++;
  }
  return a;
}

// A copy of the node with other weights (for a batch_norm, other shifts).
keel_value rebuilt(Edit& e, NodeId n, Ids in) {
  std::vector<const char*> names = {"stride", "dil", "lo", "groups"};
  if (e.is(n, "conv")) names.push_back("hi");
  if (e.is(n, "conv_grad_x")) names.push_back("dims");
  if (e.is(n, "matmul")) names = {"ta", "tb"};
  if (e.is(n, "batch_norm")) names = {"eps"};
  return e.add(std::string(e.op(n)), in, e.attrs(n, names));
}

std::optional<keel_value> scaled(Edit& e, const Root& r, const Numbers& by, bool by_output) {
  Numbers w = *doubles(e, e.in(r.node, 1));
  for (size_t i = 0; i < w.size(); i++) w[i] *= by[by_output ? r.out_of(i) : r.in_of(i)];
  return store(e, e.type(e.in(r.node, 1)).dtype, r.dims, w);
}

bool absorb_batch_norm(Edit& e, const Root& r, const Affine& a) {
  Ids in = e.ins(r.node);
  Numbers shift = *doubles(e, in[2]);
  for (size_t i = 0; i < r.channels; i++) shift[i] = shift[i] * a.scale[i] + a.shift[i];
  const std::optional<keel_value> g = scaled(e, r, a.scale, true),
                                  b = store(e, e.type(in[2]).dtype, r.dims, shift);
  if (!g || !b) return false;
  in[1] = *g;
  in[2] = *b;
  e.at(e.producer(a.end));
  return e.redirect(a.end, rebuilt(e, r.node, in));
}

bool absorb_after(Edit& e, NodeId n) {
  const std::optional<Root> r = root_at(e, n);
  if (!r) return false;
  const Affine a = chain_after(e, *r);
  if (a.steps > 0 && e.is(n, "batch_norm")) return e.constant(e.in(n, 2)) && absorb_batch_norm(e, *r, a);
  if (a.steps == 0 || (a.steps == 1 && !a.scales && e.is(e.producer(a.end), "add"))) return false;
  const keel_dt dtype = e.type(e.in(n, 1)).dtype;
  Dims dims(r->back + 1, 1);
  dims[0] = static_cast<keel_dim>(r->channels);
  Ids in = e.ins(n);
  e.at(e.producer(a.end));
  const std::optional<keel_value> w = a.scales ? scaled(e, *r, a.scale, true) : in[1],
                                  bias = a.shifts ? store(e, dtype, dims, a.shift) : KEEL_NO_VALUE;
  if (!w || !bias) return false;
  in[1] = *w;
  keel_value y = rebuilt(e, n, in);
  if (a.shifts) y = e.add("add", {y, *bias});
  return e.redirect(a.end, y);
}

// Scaled padding stays zero, so this holds for convolutions too.
bool absorb_before(Edit& e, NodeId n) {
  Ids in = e.ins(n);
  const NodeId scaling = e.producer(in[0]);
  const bool divides = e.is(scaling, "div");
  if ((!divides && !e.is(scaling, "mul")) || !e.single_use(in[0])) return false;
  const std::optional<Root> r = root_at(e, n);
  if (!r || r->in_channels == 0) return false;
  for (size_t i = divides ? 1 : 0; i < 2; i++) {
    std::optional<Numbers> c = per_channel(e, e.in(scaling, i), r->in_channels, r->back);
    const keel_value x = e.in(scaling, 1 - i);
    if (!c || !e.same_type(x, in[0])) continue;
    for (double& k : *c) k = divides ? 1 / k : k;
    e.at(n);
    const std::optional<keel_value> w = scaled(e, *r, *c, false);
    if (!w) return false;
    in[0] = x;
    in[1] = *w;
    return e.replace(n, rebuilt(e, n, in));
  }
  return false;
}

constexpr Rule kRules[] = {
    {"conv", absorb_after},       {"conv", absorb_before},       {"matmul", absorb_after},
    {"matmul", absorb_before},    {"conv_grad_x", absorb_after}, {"conv_grad_x", absorb_before},
    {"batch_norm", absorb_after},
};

}  // namespace

Rules weight_rules() { return kRules; }

}  // namespace keel_passes
