// attention.cc: Attention and RotaryEmbedding (opset 23 and later).
//
// Heads holds the operands as [batch, heads, length, width]; mask_of() combines mask, causality, window and
// padding into one bias. Then the catalogue's attention op is used or, if an intermediate result is fetched
// or softcap is on, decomposed().
#include <cmath>

#include "plugins/onnx/ops/attention.h"

#include "plugins/onnx/import/named.h"

namespace onnx_import {
keel_value repeat_heads(Edit& e, keel_value x, keel_dim heads) {
  const Dims d = e.dims(x);
  if (e.is(d[1], heads)) return x;
  const keel_dim times = e.div(heads, d[1]);
  const keel_value wide = e.op("broadcast_to", {e.reshape(x, {d[0], d[1], 1, d[2], d[3]})},
                               Attrs().dims("dims", {d[0], d[1], times, d[2], d[3]}));
  return e.reshape(wide, {d[0], heads, d[2], d[3]});
}

namespace {

struct SliceRange {
  keel_dim from, to;
  int64_t step;
};
keel_value last_dim(Edit& e, keel_value x, SliceRange part) {
  Dims start(e.dims(x).size(), 0), stop = e.dims(x);
  Ints step(start.size(), 1);
  start.back() = part.from, stop.back() = part.to, step.back() = part.step;
  return e.op("slice", {x}, Attrs().dims("start", start).dims("stop", stop).ints("step", step));
}

}  // namespace

keel_value rotate_pairs(Edit& e, keel_value x, const Angle& angle, keel_dim rotated, bool interleaved) {
  const auto [cos, sin] = angle;
  const keel_dim width = e.dims(x)[3], half = e.div(rotated, 2);
  const keel_value a = last_dim(e, x, interleaved ? SliceRange{0, rotated, 2} : SliceRange{0, half, 1});
  const keel_value b = last_dim(e, x, interleaved ? SliceRange{1, rotated, 2} : SliceRange{half, rotated, 1});
  keel_value real = e.op("sub", {e.op("mul", {cos, a}), e.op("mul", {sin, b})});
  keel_value imaginary = e.op("add", {e.op("mul", {sin, a}), e.op("mul", {cos, b})});
  Dims pair = e.dims(real), whole = e.dims(x);
  pair.push_back(1);
  whole.back() = rotated;
  if (interleaved) real = e.reshape(real, pair), imaginary = e.reshape(imaginary, pair);
  keel_value y = e.op("concat", {real, imaginary}, Attrs().i("axis", interleaved ? 4 : 3));
  if (interleaved) y = e.reshape(y, whole);
  if (e.is(rotated, width)) return y;
  return e.op("concat", {y, last_dim(e, x, {rotated, width, 1})}, Attrs().i("axis", 3));
}

namespace {

struct Heads {
  keel_value q, k, v;  // [b, h, l, d], [b, h, s, d], [b, h, s, e]
  bool flat;           // operands were [b, l, h * d]
  keel_dim past = 0;   // keys before this block of queries
};

// [b, l, h * d] to [b, h, l, d].
keel_value split_heads(Call& c, size_t i, const char* attribute) {
  const Dims d = c.dims(i);
  if (d.size() == 4) return c.in(i);
  const int64_t heads = c.i(attribute, 0);
  if (d.size() != 3 || heads < 1)
    c.invalid(cat("operand ", i, " must have 4 dims, or 3 with the attribute ", attribute));
  const keel_value x = c.e.reshape(c.in(i), {d[0], d[1], heads, c.e.div(d[2], heads)});
  return c.e.op("transpose", {x}, Attrs().ints("perm", {0, 2, 1, 3}));
}

// The cached keys (or values) followed by the new ones; also the result `present`.
keel_value with_past(Call& c, keel_value now, size_t past, size_t present) {
  if (c.has(past)) now = c.e.op("concat", {c.in(past), now}, Attrs().i("axis", 2));
  if (c.wants(present)) c.set(present, now);
  return now;
}

Heads heads_of(Call& c) {
  Heads h;
  h.flat = c.rank(0) == 3;
  h.q = split_heads(c, 0, "q_num_heads");
  const keel_value k = with_past(c, split_heads(c, 1, "kv_num_heads"), 4, 1);
  const keel_value v = with_past(c, split_heads(c, 2, "kv_num_heads"), 5, 2);
  const keel_dim heads = c.e.dims(h.q)[1];
  if (c.has(4)) h.past = c.dims(4).at(2);
  h.k = repeat_heads(c.e, k, heads);
  h.v = repeat_heads(c.e, v, heads);
  return h;
}

keel_value both(Edit& e, keel_value a, keel_value b) {
  return a == KEEL_NO_VALUE ? b : e.op("logical_and", {a, b});
}

// The keys that each query may see by position, as bools that broadcast over [b, h, l, s].
keel_value allowed_by_place(Call& c, const Heads& h) {
  Edit& e = c.e;
  const keel_dim queries = e.dims(h.q)[2], keys = e.dims(h.k)[2];
  const int64_t left = c.i("left_window_size", -1), right = c.i("right_window_size", -1);
  keel_value allowed = KEEL_NO_VALUE, offset = e.number(h.past, KEEL_I64);
  const keel_value key = e.iota(keys, KEEL_I64);
  if (c.has(6)) {
    const keel_value valid = e.reshape(e.cast(c.in(6), KEEL_I64), {c.dims(6).at(0), 1, 1, 1});
    allowed = e.op("less", {key, valid});
    if (!c.has(4)) offset = e.op("sub", {valid, e.number(queries, KEEL_I64)});
  }
  const keel_value query = e.op("add", {e.reshape(e.iota(queries, KEEL_I64), {queries, 1}), offset});
  const auto shifted = [&](int64_t by) {
    return e.op("add", {query, e.scalar(KEEL_I64, static_cast<double>(by))});
  };
  if (c.i("is_causal", 0)) allowed = both(e, allowed, e.op("less_equal", {key, query}));
  if (left >= 0) allowed = both(e, allowed, e.op("greater_equal", {key, shifted(-left)}));
  if (right >= 0) allowed = both(e, allowed, e.op("less_equal", {key, shifted(right)}));
  return allowed;
}

// The mask operand, padded to all keys with masked entries.
keel_value whole_mask(Call& c, const Heads& h) {
  Edit& e = c.e;
  const keel_dim keys = e.dims(h.k)[2];
  const Dims d = c.dims(3);
  if (d.empty()) return c.in(3);
  const bool is_bool = c.dtype(3) == KEEL_BOOL;
  if (d.back() == 1 || e.compare(d.back(), keys) != KEEL_LESS) return c.in(3);
  Dims hi(d.size(), 0);
  hi.back() = e.sub(keys, d.back());
  const keel_value forbid = e.scalar(c.dtype(3), is_bool ? 0 : -INFINITY);
  return e.op("pad", {c.in(3), forbid}, Attrs().dims("lo", Dims(d.size(), 0)).dims("hi", hi));
}

// The bias of the scores: 0 where a key is visible, -inf elsewhere; KEEL_NO_VALUE: none.
keel_value mask_of(Call& c, const Heads& h, bool by_place) {
  Edit& e = c.e;
  const keel_dt dtype = c.dtype(0);
  keel_value allowed = by_place ? allowed_by_place(c, h) : KEEL_NO_VALUE, bias = e.scalar(dtype, 0);
  const bool given = c.has(3);
  if (given && c.dtype(3) == KEEL_BOOL)
    allowed = both(e, allowed, whole_mask(c, h));
  else if (given)
    bias = e.cast(whole_mask(c, h), dtype);
  if (allowed == KEEL_NO_VALUE) return given ? bias : KEEL_NO_VALUE;
  return e.op("select", {allowed, bias, e.scalar(dtype, -INFINITY)});
}

// A query without visible keys gives zeros, not NaN.
keel_value guarded(Edit& e, keel_value y, keel_value mask) {
  if (mask == KEEL_NO_VALUE) return y;
  const keel_dt dtype = e.dtype(mask);
  const auto rank = static_cast<int64_t>(e.dims(mask).size());
  const keel_value best =
      rank ? e.op("reduce_max", {mask}, Attrs().ints("axes", {rank - 1}).flag("keep", true)) : mask;
  const keel_value seen = e.op("greater", {best, e.scalar(dtype, -INFINITY)});
  return e.op("select", {seen, y, e.scalar(e.dtype(y), 0)});
}

keel_value scale_of(Call& c, const Heads& h, keel_dt dtype) {
  if (c.has_attribute("scale")) return c.e.scalar(dtype, c.f("scale", 0));
  return c.e.op("rsqrt", {c.e.number(c.e.dims(h.q)[3], dtype)});
}

keel_value decomposed(Call& c, const Heads& h, keel_value mask) {
  Edit& e = c.e;
  const keel_dt dtype = c.dtype(0);
  const double cap = c.f("softcap", 0);
  const int64_t mode = c.i("qk_matmul_output_mode", 0);
  const auto show = [&](int64_t which, keel_value v) {
    if (c.wants(3) && mode == which) c.set(3, v);
  };
  keel_value p = e.op("mul", {e.op("matmul", {h.q, h.k}, Attrs().flag("tb", true)), scale_of(c, h, dtype)});
  show(0, p);
  const auto add_mask = [&] {
    if (mask != KEEL_NO_VALUE) p = e.op("add", {p, mask});
  };
  const auto soft_cap = [&] {
    if (cap > 0)
      p = e.op("mul", {e.op("tanh", {e.op("div", {p, e.scalar(dtype, cap)})}), e.scalar(dtype, cap)});
  };
  soft_cap();
  show(1, p);
  add_mask();
  show(2, p);
  const keel_dt inner = c.type("softmax_precision", dtype);
  p = e.cast(e.op("softmax", {e.cast(p, inner)}, Attrs().i("axis", 3)), dtype);
  p = guarded(e, p, mask);
  show(3, p);
  return e.op("matmul", {p, h.v});
}

void attention(Call& c) {
  Edit& e = c.e;
  const Heads h = heads_of(c);
  const bool causal = c.i("is_causal", 0) != 0,
             windows = c.i("left_window_size", -1) >= 0 || c.i("right_window_size", -1) >= 0;
  const bool plain_causal = causal && !windows && !c.has(3) && !c.has(6) && h.past == 0;
  const keel_value mask = mask_of(c, h, (causal && !plain_causal) || windows || c.has(6));
  const bool written =
      c.f("softcap", 0) > 0 || c.wants(3) || c.type("softmax_precision", c.dtype(0)) != c.dtype(0);
  keel_value y;
  if (written) {
    y = decomposed(c, h, plain_causal ? mask_of(c, h, true) : mask);
  } else {
    Ids in = {h.q, h.k, h.v};
    if (mask != KEEL_NO_VALUE) in.push_back(mask);
    y = guarded(e, e.op("attention", in, Attrs().f("scale", c.f("scale", 0)).flag("causal", plain_causal)),
                mask);
  }
  if (h.flat) {
    const Dims d = e.dims(y);
    y = e.reshape(e.op("transpose", {y}, Attrs().ints("perm", {0, 2, 1, 3})),
                  {d[0], d[2], e.mul(d[1], d[3])});
  }
  c.set(0, y);
}

// ---- RotaryEmbedding: rotates pairs of features by an angle that depends on the position.

// [b, s, r / 2] from the cache, with a dim of 1 for the heads.
keel_value angles(Call& c, size_t i, bool flat) {
  keel_value t = c.in(i);
  if (c.has(3)) t = c.e.op("gather", {t, c.in(3)}, Attrs().i("axis", 0));
  Dims d = c.e.dims(t);
  if (d.size() != 3) c.invalid(cat("operand ", i, " must be [batch, length, half the width]"));
  d.insert(d.begin() + (flat ? 2 : 1), 1);
  return c.e.reshape(t, d);
}

void rotary(Call& c) {
  Edit& e = c.e;
  const Dims given = c.dims(0);
  const bool flat = given.size() == 3, interleaved = c.i("interleaved", 0) != 0;
  const int64_t heads = c.i("num_heads", 0);
  if (!flat && given.size() != 4) c.invalid("its operand must have 3 or 4 dims");
  if (flat && heads < 1) c.invalid("num_heads is required with 3 dims");
  const keel_value x =
      flat ? e.reshape(c.in(0), {given[0], given[1], heads, e.div(given[2], heads)}) : c.in(0);
  const keel_dim width = e.dims(x)[3],
                 rotated = c.i("rotary_embedding_dim", 0) ? c.i("rotary_embedding_dim", 0) : width;
  const keel_value y = rotate_pairs(e, x, {angles(c, 1, flat), angles(c, 2, flat)}, rotated, interleaved);
  c.set(0, flat ? e.reshape(y, given) : y);
}

constexpr Rule kRules[] = {
    {"Attention", 23, attention,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale "
     "softcap softmax_precision"},
    {"RotaryEmbedding", 23, rotary, "interleaved num_heads rotary_embedding_dim"},
};

}  // namespace

Rules attention_rules() { return kRules; }

}  // namespace onnx_import
