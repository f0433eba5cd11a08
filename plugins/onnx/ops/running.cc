// running.cc: values carried along a dim: Det (elimination), LinearAttention, and CausalConvWithState.
#include <cmath>

#include "plugins/onnx/ops/loop.h"

namespace onnx_import {
namespace {

// Row k of each matrix [b, n, n], or column k (axis 2), as [b, n].
Term line(const Term& a, const Term& is_k, size_t axis) {
  const Term mask = axis == 1 ? is_k.unsqueeze(is_k.rank()) : is_k.unsqueeze(is_k.rank() - 1);
  return select(mask, a, 0).sum({static_cast<int64_t>(axis)});
}

// The product of the pivots of Gauss's elimination; each step swaps the row of the largest pivot into place.
Terms eliminated(const Terms& carried, const Terms& steps) {
  const Term &a = carried[0], &product = carried[1], &k = steps[0];
  Edit& e = a.edit();
  const keel_dim n = a.dim(1);
  const Term at = counting_term(e, n, KEEL_I64), is_k = (at == k).reshape({1, n}), later = at > k;
  const Term column = line(a, is_k, 2);
  const Term size = select(at < k, -1, column.op("abs"));
  const Term best = size.op("arg_max", Attrs().i("axis", 1));
  const Term is_best = at == best.unsqueeze(1);
  const Term pivots = line(a, is_best, 1), replaced = line(a, is_k, 1);
  const Term swapped =
      select(is_k.unsqueeze(2), pivots.unsqueeze(1), select(is_best.unsqueeze(2), replaced.unsqueeze(1), a));
  const Term pivot = select(is_k, pivots, 0).sum({1});
  const Term sign = select(best == k, product.n(1), product.n(-1));
  const Term divisor = select(pivot == 0, 1, pivot).unsqueeze(1);
  const Term factor = select(later, line(swapped, is_k, 2) / divisor, 0);
  return {swapped - factor.unsqueeze(2) * pivots.unsqueeze(1), product * pivot * sign};
}

void det(Call& c) {
  const Dims d = c.dims(0);
  const size_t rank = d.size();
  if (rank < 2) c.invalid(cat("its operand has ", rank, " dims; expected square matrices"));
  if (c.e.compare(d[rank - 1], d[rank - 2]) != KEEL_EQUAL) c.invalid("its matrices are not square");
  const Dims batch(d.begin(), d.end() - 2);
  const keel_dim count = c.e.product(batch);
  const Term x = Term(c, 0).to(wide(c.dtype(0))).reshape({count, d[rank - 1], d[rank - 1]});
  ScanOperands in;
  in.carried = {x, filled(c.e, x.dtype(), 1, {count})};
  in.scanned = {counting_term(c.e, d[rank - 1], KEEL_I64)};
  const Terms out =
      scan(c.e, in, [](const Terms& p, const Terms&, const Terms& k) { return eliminated(p, k); });
  c.set(0, out[1].reshape(batch).to(c.dtype(0)).v);
}

// ---- LinearAttention: a state of [b, heads, keys, values], updated with each token.

struct UpdateRule {
  bool gated, delta;
};

UpdateRule update_rule(Call& c) {
  const std::string rule = c.s("update_rule", "gated_delta");
  if (rule == "linear") return {false, false};
  if (rule == "gated") return {true, false};
  if (rule == "delta") return {false, true};
  if (rule != "gated_delta")
    c.invalid(cat("update_rule is '", rule, "'; expected linear, gated, delta or gated_delta"));
  return {true, true};
}

// Operand i, [b, t, heads * d], as [t, b, heads, d] in f32.
Term by_token(Call& c, size_t i, int64_t heads) {
  const Dims d = c.dims(i);
  if (d.size() != 3)
    c.invalid(cat("operand ", i, " has ", d.size(), " dims; expected [batch, length, width]"));
  return Term(c, i).to(KEEL_F32).reshape({d[0], d[1], heads, c.e.div(d[2], heads)}).transpose({1, 0, 2, 3});
}

Term repeated(const Term& state, keel_dim heads) {
  const Dims d = state.dims();
  Edit& e = state.edit();
  if (e.is(d[1], heads)) return state;
  return state.unsqueeze(2)
      .broadcast({d[0], d[1], e.div(heads, d[1]), d[2], d[3]})
      .reshape({d[0], heads, d[2], d[3]});
}

// Operands of one token: query, key, value, then decay and beta if the rule has them.
Terms attend(const UpdateRule& rule, int64_t heads, const Term& before, const Terms& token) {
  Term state = before, value = token[2].unsqueeze(2);  // [b, heads, 1, values]
  const Term key = token[1].unsqueeze(3);              // [b, heads, keys, 1]
  if (rule.gated) state = state * token[3].op("exp").unsqueeze(3);
  if (rule.delta) value = token[rule.gated ? 4 : 3].unsqueeze(3) * (value - (state * key).sum({2}, true));
  state = state + key * value;
  const Term read = (repeated(state, heads) * token[0].unsqueeze(3)).sum({2});
  return {state, read};
}

void linear_attention(Call& c) {
  Edit& e = c.e;
  const UpdateRule rule = update_rule(c);
  const int64_t heads = c.required("q_num_heads"), kv_heads = c.required("kv_num_heads");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    c.invalid(cat("q_num_heads is ", heads, " and kv_num_heads ", kv_heads, "; expected a multiple of it"));
  if (rule.gated != c.has(4))
    c.invalid(rule.gated ? "operand decay is missing" : "operand decay is not used by its update_rule");
  if (rule.delta != c.has(5))
    c.invalid(rule.delta ? "operand beta is missing" : "operand beta is not used by its update_rule");
  ScanOperands in;
  in.scanned = {by_token(c, 0, heads), by_token(c, 1, kv_heads), by_token(c, 2, kv_heads)};
  if (rule.gated) in.scanned.push_back(by_token(c, 4, kv_heads));
  if (rule.delta) in.scanned.push_back(by_token(c, 5, c.e.is(c.dims(5)[2], 1) ? 1 : kv_heads));
  const keel_dim keys = in.scanned[1].dim(3), values = in.scanned[2].dim(3);
  const keel_dt state_type = c.has(3) ? c.dtype(3) : c.dtype(0);
  in.carried = {c.has(3) ? Term(c, 3).to(KEEL_F32)
                         : filled(e, KEEL_F32, 0, {c.dims(0)[0], kv_heads, keys, values})};
  const Terms out = scan(e, in, [&](const Terms& state, const Terms&, const Terms& token) {
    return attend(rule, heads, state[0], token);
  });
  const double given = c.f("scale", 0);
  const Term read = given != 0 ? out[1] * given : out[1] / out[1].size(keys).op("sqrt");
  const Dims d = c.dims(0);
  c.set(0, read.transpose({1, 0, 2, 3}).reshape({d[0], d[1], e.mul(heads, values)}).to(c.dtype(0)).v);
  c.set(1, out[0].to(state_type).v);
}

// A convolution per channel over the sequence and the elements before it, which are the state.
void causal_conv(Call& c) {
  Edit& e = c.e;
  const Dims d = c.dims(0), w = c.dims(1);
  if (d.size() != 3 || w.size() != 3)
    c.invalid("expected operands [batch, channels, length] and [channels, 1, k]");
  const std::string activation = c.s("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    c.invalid(cat("activation is '", activation, "'; expected none, silu or swish"));
  const keel_dim before = e.sub(w[2], 1);
  const int64_t channels = static_dim(c, w[0], "the number of channels");
  const Term past = c.has(3) ? Term(c, 3) : filled(e, c.dtype(0), 0, {d[0], d[1], before});
  const Term all = concat({past, Term(c, 0)}, 2);
  Term y = all.op("conv", Term(c, 1), Attrs().i("groups", channels));
  if (c.has(2)) y = y + Term(c, 2).reshape({c.dims(2).at(0), 1});
  if (activation != "none") y = y.to(wide(y.dtype())).op("silu").to(y.dtype());
  c.set(0, y.v);
  const keel_dim length = e.add(d[2], before);
  c.set(1, all.slice(2, e.sub(length, before), length).v);
}

constexpr Rule kRules[] = {
    {"Det", 11, det},
    {"LinearAttention", 27, linear_attention, "chunk_size kv_num_heads q_num_heads scale update_rule"},
    {"CausalConvWithState", 27, causal_conv, "activation"},
};

}  // namespace

Rules running_rules() { return kRules; }

}  // namespace onnx_import
