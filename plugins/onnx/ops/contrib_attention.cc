// contrib_attention.cc: attention of ONNX Runtime's exports, domain com.microsoft: Attention, QAttention,
// MultiHeadAttention, GroupQueryAttention, RotaryEmbedding.
//
// Each brings its operands to [batch, heads, length, width] and its masks to one bias of the scores.
#include <algorithm>
#include <cmath>
#include <optional>

#include "plugins/onnx/ops/attention.h"
#include "plugins/onnx/ops/quantize.h"

namespace onnx_import {
namespace {

struct Heads {
  Term q, k, v;  // [b, h, s, d], [b, h, t, d], [b, h, t, e]
};
using Bias = std::optional<Term>;  // broadcasts over [b, h, s, t]

Bias plus(const Bias& a, const Term& b) { return a ? *a + b : b; }

// Attributes and operands that are not taken, unless they have no effect.
void refuse_set(Call& c, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (c.i(name, 0)) c.unsupported(cat("attribute ", name, " other than 0"));
}
void refuse_operands(Call& c, std::initializer_list<std::pair<size_t, const char*>> operands) {
  for (const auto& [i, name] : operands)
    if (c.has(i)) c.unsupported(cat("operand ", i, ", ", name));
}

int64_t heads_of(Call& c, const char* name) {
  const int64_t n = c.required(name);
  if (n < 1 || n > (1 << 20)) c.invalid(cat(name, " is ", n, "; expected 1 to 1048576"));
  return n;
}

// [b, s, h * d] to [b, h, s, d] and back.
Term split(Call& c, const Term& x, int64_t heads) {
  const Dims d = x.dims();
  if (d.size() != 3) c.invalid(cat("an operand has ", d.size(), " dims; expected [batch, length, width]"));
  if (heads < 1) c.invalid(cat("a width of ", d[2], " is less than one head"));
  if (!KEEL_DIM_IS_HANDLE(d[2]) && d[2] % heads != 0)
    c.invalid(cat("a width of ", d[2], " for ", heads, " heads"));
  return x.reshape({d[0], d[1], heads, c.e.div(d[2], heads)}).transpose({0, 2, 1, 3});
}
Term merged(const Term& x) {
  const Dims d = x.dims();
  return x.transpose({0, 2, 1, 3}).reshape({d[0], d[2], x.edit().mul(d[1], d[3])});
}

Term place(Edit& e, keel_dim n, Dims to) { return counting_term(e, n, KEEL_I64).reshape(std::move(to)); }

// The mask operand: key lengths [b], ends and starts [2 b], 1 for keys to keep [b, t] or [b, s, t].
Bias padding(Call& c, size_t i, const Heads& h) {
  if (!c.has(i)) return {};
  Edit& e = c.e;
  const Dims d = c.dims(i);
  const keel_dim b = h.q.dim(0), s = h.q.dim(2), t = h.k.dim(2);
  const Term mask = Term(c, i).to(KEEL_I64), key = place(e, t, {1, 1, 1, t});
  const auto column = [&](keel_dim from, keel_dim until) {
    return mask.slice(0, from, until).reshape({b, 1, 1, 1});
  };
  std::optional<Term> keep;
  if (d.size() == 1 && e.is(d[0], b)) {
    keep = key < column(0, b);
  } else if (d.size() == 1 && e.is(d[0], e.mul(b, 2))) {
    keep = (key < column(0, b)) & (key < column(b, d[0])).op("logical_not");
  } else if (d.size() == 2 && e.may_be(d[1], t)) {
    keep = mask.reshape({d[0], 1, 1, d[1]}) > 0;
  } else if (d.size() == 3 && e.may_be(d[1], s) && e.may_be(d[2], t)) {
    keep = mask.reshape({d[0], 1, d[1], d[2]}) > 0;
  } else {
    c.unsupported(cat("a mask of ", d.size(),
                      " dims; expected [batch], [2 * batch], [batch, keys] or [batch, queries, keys]"));
  }
  const Term zero = h.q.n(0);
  return select(*keep, zero, h.q.n(c.f("mask_filter_value", -10000)));
}

// Queries are the last of the keys and see those before them.
Bias causal(Call& c, const Heads& h, Bias bias) {
  if (!c.i("unidirectional", 0)) return bias;
  Edit& e = c.e;
  const keel_dim s = h.q.dim(2), t = h.k.dim(2);
  const Term query = place(e, s, {s, 1}), last = query + query.size(e.sub(t, s));
  const Term ahead = last < place(e, t, {1, t});
  return plus(bias, select(ahead, h.q.n(-INFINITY), h.q.n(0)));
}

Term attend(Call& c, const Heads& h, const Bias& bias) {
  const double scale = c.f("scale", 0), cap = c.f("softcap", 0);
  if (cap <= 0) {
    Ids in = {h.q.v, h.k.v, h.v.v};
    if (bias) in.push_back(bias->v);
    return merged({c.e, c.e.op("attention", in, Attrs().f("scale", scale))});
  }
  const keel_dt dtype = h.q.dtype();
  const Term width(c.e, c.e.number(h.q.dim(3), dtype));
  Term p = h.q.op("matmul", h.k, Attrs().flag("tb", true));
  p = scale != 0 ? p * scale : p / width.op("sqrt");
  p = (p / cap).op("tanh") * cap;
  if (bias) p = p + *bias;
  return merged(p.op("softmax", Attrs().i("axis", 3)).op("matmul", h.v));
}

// The past keys and values [2, b, h, p, d], then the new ones; both are the result `present`.
void join_past(Call& c, size_t past, Heads* h) {
  if (c.has(past)) {
    const Term all(c, past);
    if (all.rank() != 5) c.invalid(cat("operand ", past, ", past, has ", all.rank(), " dims; expected 5"));
    const auto part = [&](int64_t k) { return all.slice(0, k, k + 1).reshape(without(all.dims(), 0)); };
    h->k = concat({part(0), h->k}, 2), h->v = concat({part(1), h->v}, 2);
  }
  if (c.wants(1)) c.set(1, concat({h->k.unsqueeze(0), h->v.unsqueeze(0)}, 0).v);
}

// qkv: [b, s, q + k + v], the widths of its parts
Heads parts(Call& c, const Term& qkv, const Dims& widths, int64_t heads, int64_t kv_heads) {
  const keel_dim k = c.e.add(widths[0], widths[1]);
  return {split(c, qkv.slice(2, 0, widths[0]), heads), split(c, qkv.slice(2, widths[0], k), kv_heads),
          split(c, qkv.slice(2, k, c.e.add(k, widths[2])), kv_heads)};
}

void packed_attention(Call& c, const Term& qkv, size_t mask, size_t past, std::optional<size_t> extra) {
  refuse_set(c, {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"});
  const int64_t heads = heads_of(c, "num_heads");
  if (qkv.rank() != 3)
    c.invalid(cat("its operand has ", qkv.rank(), " dims; expected [batch, length, width]"));
  const keel_dim third = c.e.div(qkv.dim(2), 3);
  const Ints sizes = c.ints("qkv_hidden_sizes");
  const auto total = [&] { return c.e.add(c.e.add(sizes[0], sizes[1]), sizes[2]); };
  const bool positive = std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n > 0; });
  if (!sizes.empty() && (sizes.size() != 3 || !positive || !c.e.is(total(), qkv.dim(2))))
    c.invalid(
        cat("qkv_hidden_sizes are not three parts of the ", c.e.text(qkv.dim(2)), " columns of the weights"));
  Heads h = parts(c, qkv, sizes.empty() ? Dims{third, third, third} : sizes, heads, heads);
  join_past(c, past, &h);
  Bias bias = causal(c, h, padding(c, mask, h));
  if (extra && c.has(*extra)) bias = plus(bias, Term(c, *extra));
  c.set(0, attend(c, h, bias).v);
}

void attention(Call& c) {
  refuse_operands(c, {{6, "past_sequence_length"}});
  Term qkv = Term(c, 0).op("matmul", Term(c, 1));
  if (c.has(2)) qkv = qkv + Term(c, 2);
  packed_attention(c, qkv, 3, 4, 5);
}

void quantised_attention(Call& c) {
  const Term product = integer_product(c, 0, 1, 6, 7).to(KEEL_F32);
  packed_attention(c, product * (spread(c, 3) * spread(c, 4)) + Term(c, 2), 5, 8, {});
}

// The operand's part of the bias [q + k + v] added to it, in heads.
Term biased(Call& c, Term x, int64_t heads, keel_dim from) {
  if (c.has(3)) x = x + Term(c, 3).slice(0, from, c.e.add(from, x.dim(2)));
  return split(c, x, heads);
}
// Part k of [b, s, heads, parts, d].
Term part_of(const Term& x, int64_t k) {
  return x.slice(3, k, k + 1).reshape(without(x.dims(), 3)).transpose({0, 2, 1, 3});
}

Heads multi_heads(Call& c, int64_t heads) {
  const Term q(c, 0);
  if (!c.has(1)) {
    if (q.rank() != 5 || q.dim(3) != 3)
      c.invalid("without a key, query must be [batch, length, heads, 3, width]");
    if (c.has(3)) c.unsupported("operand 3, bias, with packed operands");
    return {part_of(q, 0), part_of(q, 1), part_of(q, 2)};
  }
  const Term k(c, 1), query = biased(c, q, heads, 0);
  if (!c.has(2)) {
    if (k.rank() != 5 || k.dim(3) != 2)
      c.invalid("without a value, key must be [batch, length, heads, 2, width]");
    if (c.has(3)) c.unsupported("operand 3, bias, with packed operands");
    return {query, part_of(k, 0), part_of(k, 1)};
  }
  const Term v(c, 2);
  if (k.rank() == 4 && v.rank() == 4) return {query, k, v};
  const keel_dim width = q.dim(2);
  return {query, biased(c, k, heads, width), biased(c, v, heads, c.e.add(width, width))};
}

void multi_head_attention(Call& c) {
  refuse_operands(c, {{8, "past_sequence_length"}, {9, "cache_indirection"}});
  c.expect_outputs(3);
  Heads h = multi_heads(c, heads_of(c, "num_heads"));
  if (c.has(6)) h.k = concat({Term(c, 6), h.k}, 2);
  if (c.has(7)) h.v = concat({Term(c, 7), h.v}, 2);
  c.set(1, h.k.v), c.set(2, h.v.v);
  Bias bias = causal(c, h, padding(c, 4, h));
  if (c.has(5)) bias = plus(bias, Term(c, 5));
  c.set(0, attend(c, h, bias).v);
}

// Entries of the caches [length, rotated / 2] at positions [b or 1, s], turning x [b, h, s, d].
Term turned(Call& c, const Term& x, const Term& at, size_t cache, bool interleaved) {
  Edit& e = c.e;
  const Term cos(c, cache), sin(c, cache + 1);
  if (at.rank() != 2 || cos.rank() != 2 || sin.rank() != 2)
    c.invalid(
        cat("positions have ", at.rank(), " dims, caches ", cos.rank(), " and ", sin.rank(), "; expected 2"));
  const auto angle = [&](const Term& cache) { return cache.gather(at, 0).unsqueeze(1).v; };
  return {e, rotate_pairs(e, x.v, {angle(cos), angle(sin)}, e.mul(cos.dim(1), 2), interleaved)};
}

void rotary_embedding(Call& c) {
  refuse_set(c, {"is_packed_batching"});
  if (c.f("scale", 1) != 1) c.unsupported("attribute scale other than 1");
  const Term x(c, 0), cos(c, 2);
  const bool flat = x.rank() == 3;
  if ((!flat && x.rank() != 4) || cos.rank() != 2)
    c.invalid("its operand must have 3 or 4 dims, its caches 2");
  int64_t heads = c.i("num_heads", 0);
  if (flat && heads < 1)
    heads = static_dim(c, c.e.div(x.dim(2), c.e.mul(cos.dim(1), 2)), "the number of heads");
  const Term wide = flat ? split(c, x, heads) : x;
  Term at = Term(c, 1).to(KEEL_I64);
  if (at.rank() == 1) at = at.reshape({1, 1}) + place(c.e, wide.dim(2), {1, wide.dim(2)});
  const Term y = turned(c, wide, at, 2, c.i("interleaved", 0) != 0);
  c.set(0, flat ? merged(y).v : y.v);
}

// ---- GroupQueryAttention: each sequence has its own number of keys. The first `before` keys of its past are
// valid; the new ones follow them.
struct Group {
  Heads h;
  Term before;  // [b, 1]
};

Group group_of(Call& c) {
  const int64_t heads = heads_of(c, "num_heads"), kv = heads_of(c, "kv_num_heads");
  if (heads % kv != 0) c.invalid(cat("num_heads is ", heads, ", no multiple of kv_num_heads, ", kv));
  const Term x(c, 0);
  if (x.rank() != 3) c.invalid(cat("query has ", x.rank(), " dims; expected [batch, length, width]"));
  const Term before =
      (Term(c, 5).to(KEEL_I64).reshape({x.dim(0), 1}) + 1 - Term(c.e, c.e.number(x.dim(1), KEEL_I64)))
          .op("maximum", 0);
  if (c.has(1)) return {{split(c, x, heads), split(c, Term(c, 1), kv), split(c, Term(c, 2), kv)}, before};
  const keel_dim width = c.e.div(x.dim(2), heads + 2 * kv), each = c.e.mul(width, kv);
  return {parts(c, x, {c.e.mul(width, heads), each, each}, heads, kv), before};
}

// The past and the new entries behind it, for each sequence behind its own valid ones.
Term appended(Call& c, const Term& past, const Term& now, const Term& before) {
  Edit& e = c.e;
  const Term all = concat({past, now}, 2);
  const keel_dim t = all.dim(2), b = all.dim(0);
  const Term at = place(e, t, {1, 1, t, 1}), first = before.reshape({b, 1, 1, 1});
  const Term moved = (at - first + at.size(past.dim(2))).op("minimum", at.size(e.sub(t, 1)));
  const Term index = select(at < first, at, moved).broadcast(all.dims());
  const Term y = all.op("gather_elements", index, Attrs().i("axis", 2));
  double total = 0;
  if (!stored_number(c, 6, &total)) return y;
  return y.slice(2, 0, e.max(past.dim(2), static_cast<int64_t>(total)));
}

Bias visible(Call& c, const Group& g) {
  Edit& e = c.e;
  const keel_dim b = g.h.q.dim(0), s = g.h.q.dim(2), t = g.h.k.dim(2);
  const Term query = g.before.reshape({b, 1, 1, 1}) + place(e, s, {1, 1, s, 1}),
             key = place(e, t, {1, 1, 1, t});
  Term hidden = query < key;
  const int64_t window = c.i("local_window_size", -1);
  if (window == 0 || window < -1)
    c.invalid(cat("local_window_size is ", window, "; expected -1 or at least 1"));
  if (window > 0) hidden = hidden | (key < query - static_cast<double>(window - 1));
  return select(hidden, g.h.q.n(-INFINITY), g.h.q.n(0));
}

void group_query_attention(Call& c) {
  refuse_set(c, {"kv_cache_bit_width", "qk_output", "sliding_window_cache", "smooth_softmax"});
  if (!c.i("causal", 1)) c.unsupported("attribute causal other than 1");
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (c.s(name, "NONE") != "NONE") c.unsupported(cat("attribute ", name, " other than NONE"));
  refuse_operands(
      c, {{11, "head_sink"}, {12, "k_scale"}, {13, "v_scale"}, {14, "q_norm_weight"}, {15, "k_norm_weight"}});
  c.expect_outputs(3);
  Group g = group_of(c);
  Heads& h = g.h;
  if (c.i("do_rotary", 0)) {
    const keel_dim s = h.q.dim(2);
    const Term at = c.has(9) ? Term(c, 9).to(KEEL_I64) : g.before + place(c.e, s, {1, s});
    const bool interleaved = c.i("rotary_interleaved", 0) != 0;
    h.q = turned(c, h.q, at, 7, interleaved);
    h.k = turned(c, h.k, at, 7, interleaved);
  }
  if (c.has(3)) h.k = appended(c, Term(c, 3), h.k, g.before);
  if (c.has(4)) h.v = appended(c, Term(c, 4), h.v, g.before);
  c.set(1, h.k.v), c.set(2, h.v.v);
  Bias bias = visible(c, g);
  if (c.has(10)) bias = plus(bias, Term(c, 10));
  const keel_dim heads = h.q.dim(1);
  h.k = {c.e, repeat_heads(c.e, h.k.v, heads)}, h.v = {c.e, repeat_heads(c.e, h.v.v, heads)};
  c.set(0, attend(c, h, bias).v);
}

#define MS "com.microsoft."
constexpr Rule kRules[] = {
    {MS "Attention", 1, attention,
     "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
     "rotary_embedding_dim scale unidirectional"},
    {MS "QAttention", 1, quantised_attention,
     "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional"},
    {MS "MultiHeadAttention", 1, multi_head_attention, "mask_filter_value num_heads scale unidirectional"},
    {MS "RotaryEmbedding", 1, rotary_embedding,
     "interleaved is_packed_batching num_heads rotary_embedding_dim scale"},
    {MS "GroupQueryAttention", 1, group_query_attention,
     "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads "
     "qk_norm_epsilon qk_output rotary_interleaved scale sliding_window_cache smooth_softmax softcap "
     "v_quant_type"},
};

}  // namespace

Rules contrib_attention_rules() { return kRules; }

}  // namespace onnx_import
