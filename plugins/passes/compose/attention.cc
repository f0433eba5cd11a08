// attention.cc: recognises softmax(q k' * scale + mask) v, where softmax is already a composite.
//
// Matching goes from the product with v back to q and k: softmax over the last axis, an additive mask, a
// causal mask that selects -inf, factors on the scores or on q and k. k must have its last two dims
// transposed, by matmul's flag or by a transpose, with or without reshapes of the other dims around it.
#include <cmath>
#include <utility>

#include "plugins/passes/compose/pattern.h"
#include "plugins/passes/edit/numbers.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

struct Attention {
  keel_value q = KEEL_NO_VALUE, k = KEEL_NO_VALUE, v = KEEL_NO_VALUE, mask = KEEL_NO_VALUE;
  bool k_transposed = false;  // its last two dims are already swapped
  double scale = 1;
  bool causal = false, zero_nan = false;
};

// v with its last two dims swapped, if at most the transpose that produced v changes.
keel_value transposed(Edit& e, keel_value v) {
  Dims dims = e.type(v).dims;
  const size_t rank = dims.size();
  if (const NodeId t = e.made_by(v, "transpose"); t != kNone) {
    Ints perm = e.list(t, "perm");
    std::swap(perm[rank - 1], perm[rank - 2]);
    bool whole = true;
    for (size_t i = 0; i < rank; i++) whole = whole && perm[i] == static_cast<int64_t>(i);
    return whole ? e.in(t, 0) : e.add("transpose", {e.in(t, 0)}, Attrs().ints("perm", perm));
  }
  const NodeId r = e.made_by(v, "reshape");
  if (r == kNone) return KEEL_NO_VALUE;
  const Dims from = e.type(e.in(r, 0)).dims;
  const bool keeps = from.size() >= 2 && e.same(from[from.size() - 1], dims[rank - 1]) &&
                     e.same(from[from.size() - 2], dims[rank - 2]);
  const keel_value x = keeps ? transposed(e, e.in(r, 0)) : KEEL_NO_VALUE;
  std::swap(dims[rank - 1], dims[rank - 2]);
  return x == KEEL_NO_VALUE ? x : e.add("reshape", {x}, Attrs().dims("to", dims));
}

bool read_scores(Pattern& p, keel_value scores, Attention* a) {
  Edit& e = p.edit();
  a->scale = 1;
  const keel_value product = p.unscaled(scores, &a->scale);
  const NodeId n = p.made_by(product, "matmul");
  if (n == kNone || e.integer(n, "ta") != 0) return false;
  a->q = p.unscaled(e.in(n, 0), &a->scale);
  a->k = p.unscaled(e.in(n, 1), &a->scale);
  a->k_transposed = e.integer(n, "tb") == 0;
  return a->scale != 0 && std::isfinite(a->scale);  // a scale of 0 has a special meaning
}

// Whether element [i, j] of the last two dims is true exactly if j <= i (with `above`: if j > i).
bool is_triangle(const Edit& e, keel_value v, bool above) {
  const Type t = e.type(v);
  const auto* bytes = static_cast<const uint8_t*>(t.data);
  if (bytes == nullptr || t.rank() < 2 || t.dtype != KEEL_BOOL) return false;
  const int64_t columns = t.dims[t.rank() - 1], rows = t.dims[t.rank() - 2];
  for (int64_t at = 0, n = t.count(); at < n; at++)
    if ((bytes[at] != 0) != ((at % columns <= at / columns % rows) != above)) return false;
  return true;
}

// Whether v is computed as column index <= row index, like in the catalogue's body.
bool is_computed_triangle(const Edit& e, keel_value v) {
  const NodeId n = e.made_by(v, "less_equal");
  const int64_t rank = static_cast<int64_t>(e.type(v).rank());
  for (size_t i = 0; i < 2; i++) {
    const NodeId iota = n == kNone ? kNone : e.made_by(e.in(n, i), "iota");
    const bool same = iota != kNone && e.same(e.type(e.in(n, i)).dims, e.type(v).dims);
    if (!same || e.integer(iota, "axis") != rank - 1 - static_cast<int64_t>(i)) return false;
  }
  return rank >= 2;
}

// The scores if a triangle selects them and -inf elsewhere; else z itself.
keel_value read_causal(Pattern& p, keel_value z, Attention* a) {
  const Edit& e = p.edit();
  const NodeId n = e.made_by(z, "select");
  for (size_t i = 1; n != kNone && i < 3; i++) {
    const keel_value kept = e.in(n, i), chosen = e.in(n, 0);
    const bool triangle = is_triangle(e, chosen, i == 2) || (i == 1 && is_computed_triangle(e, chosen));
    const Dims dims = e.type(kept).dims, most = e.type(chosen).dims;
    if (!triangle || !is_all(e, e.in(n, 3 - i), -HUGE_VAL) || dims.size() < 2) continue;
    if (!e.same(Dims(dims.end() - 2, dims.end()), Dims(most.end() - 2, most.end()))) continue;
    p.made_by(z, "select");
    a->causal = true;
    return kept;
  }
  return z;
}

bool read_masked(Pattern& p, keel_value z, Attention* a) {
  Pattern bare = p;
  if (read_scores(bare, z, a)) {
    p = bare;
    return true;
  }
  return p.either(p.made_by(z, "add"), [&](Pattern& q, keel_value scores, keel_value mask) {
    a->mask = mask;
    return read_scores(q, scores, a);
  });
}

// w of select(is_nan(w), 0, w), which PyTorch writes for fully masked rows; else v itself.
keel_value read_weights(Pattern& p, keel_value v, Attention* a) {
  const Edit& e = p.edit();
  const NodeId n = e.made_by(v, "select");
  const NodeId test = n == kNone ? kNone : e.made_by(e.in(n, 0), "is_nan");
  const keel_value w = test == kNone ? KEEL_NO_VALUE : e.in(test, 0);
  if (w == KEEL_NO_VALUE || e.in(n, 2) != w || !is_all(e, e.in(n, 1), 0) || !e.same_type(v, w)) return v;
  p.made_by(v, "select");
  p.made_by(e.in(n, 0), "is_nan");
  a->zero_nan = true;
  return w;
}

bool to_attention(Edit& e, NodeId n) {
  Pattern p(e, n);
  Attention a;
  const NodeId softmax = p.made_by(read_weights(p, e.in(n, 0), &a), "softmax");
  if (softmax == kNone || e.integer(n, "ta") != 0) return false;
  const keel_value z = e.in(softmax, 0);
  if (e.integer(softmax, "axis") + 1 != static_cast<int64_t>(e.type(z).rank())) return false;
  if (!read_masked(p, read_causal(p, z, &a), &a) || !p.closed()) return false;
  a.v = e.in(n, 1);
  e.at(n);
  if (a.k_transposed) a.k = transposed(e, a.k);
  if (e.integer(n, "tb") != 0) a.v = transposed(e, a.v);
  if (a.k == KEEL_NO_VALUE || a.v == KEEL_NO_VALUE) return false;
  Ids in = {a.q, a.k, a.v};
  if (a.mask != KEEL_NO_VALUE) in.push_back(a.mask);
  return p.become("attention", in,
                  Attrs().f("scale", a.scale).flag("causal", a.causal).flag("zero_nan", a.zero_nan));
}

constexpr Rule kRules[] = {{"matmul", to_attention}};

}  // namespace

Rules attention_rules() { return kRules; }

}  // namespace keel_passes
