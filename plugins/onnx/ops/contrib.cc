// contrib.cc: operators of ONNX Runtime's exports, domain com.microsoft.
#include <cmath>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

void fused_matmul(Call& c) {
  for (const char* name : {"transBatchA", "transBatchB"})
    if (c.i(name, 0)) c.unsupported(cat("attribute ", name));
  expect_matrices(c, 0, 1);
  const Attrs turns = Attrs().flag("ta", c.i("transA", 0) != 0).flag("tb", c.i("transB", 0) != 0);
  const double alpha = c.f("alpha", 1);
  const Term y = Term(c, 0).op("matmul", Term(c, 1), turns);
  c.set(0, alpha == 1 ? y.v : (y * alpha).v);
}

void gelu(Call& c) { c.done("gelu", {c.in(0)}); }
Term fast_gelu_of(const Term& x) { return x.op("gelu", Attrs().flag("tanh", true)); }
void fast_gelu(Call& c) {
  const Term x(c, 0);
  c.set(0, fast_gelu_of(c.has(1) ? x + Term(c, 1) : x).v);
}
void bias_gelu(Call& c) { c.set(0, (Term(c, 0) + Term(c, 1)).op("gelu").v); }
void quick_gelu(Call& c) {
  const Term x(c, 0);
  c.set(0, (x * (x * c.f("alpha", 1.702f)).op("sigmoid")).v);
}

Term layer_norm(Call& c, const Term& x, size_t gamma, size_t beta) {
  const Term g(c, gamma), b = c.has(beta) ? Term(c, beta) : g * 0;
  return {c.e, c.e.op("layer_norm", {x.v, g.v, b.v}, Attrs().f("eps", c.f("epsilon", 1e-12f)))};
}
Term rms_norm(Call& c, const Term& x, size_t gamma, double eps) {
  return {c.e, c.e.op("rms_norm", {x.v, c.in(gamma)}, Attrs().f("eps", eps))};
}

// The sum of operand, skip connection and bias, normalised; result 3 is the sum.
Term skip_sum(Call& c, size_t bias) {
  const Term sum = Term(c, 0) + Term(c, 1);
  return c.has(bias) ? sum + Term(c, bias) : sum;
}
void skipped(Call& c, const Term& sum, const Term& y) {
  for (size_t k : {1, 2})
    if (c.wants(k)) c.unsupported(cat("result ", k, ", statistics for training"));
  c.set(0, y.v);
  c.set(3, sum.v);
}
void skip_layer_norm(Call& c) {
  const Term sum = skip_sum(c, 4);
  skipped(c, sum, layer_norm(c, sum, 2, 3));
}
void skip_rms_norm(Call& c) {
  const Term sum = skip_sum(c, 3);
  skipped(c, sum, rms_norm(c, sum, 2, c.f("epsilon", 1e-12f)));
}

// As in ai.onnx, where ONNX Runtime also exports it.
void simplified_norm(Call& c) {
  c.expect_outputs(1);
  if (c.axis(c.i("axis", -1), c.rank(0)) != c.rank(0) - 1) c.unsupported("an axis other than the last");
  c.set(0, rms_norm(c, Term(c, 0), 1, c.f("epsilon", 1e-5f)).v);
}

// Word, position and segment embeddings, added and normalised.
void embed_layer_norm(Call& c) {
  c.expect_outputs(1);
  if (c.has(7)) c.unsupported("a mask");
  Edit& e = c.e;
  const Dims d = c.dims(0);
  if (d.size() != 2) c.invalid(cat("input_ids has ", d.size(), " dims; expected [batch, length]"));
  const Term place = c.has(8) ? Term(c, 8).to(KEEL_I64) : counting_term(e, d[1], KEEL_I64);
  Term sum = Term(c, 2).gather(Term(c, 0), 0) + Term(c, 3).gather(place, 0);
  if (c.has(1) && c.has(4)) sum = sum + Term(c, 4).gather(Term(c, 1), 0);
  c.set(0, layer_norm(c, sum, 5, 6).v);
}

#define MS "com.microsoft."
constexpr Rule kRules[] = {
    {MS "FusedMatMul", 1, fused_matmul, "alpha transA transB transBatchA transBatchB"},
    {MS "Gelu", 1, gelu},
    {MS "FastGelu", 1, fast_gelu},
    {MS "BiasGelu", 1, bias_gelu},
    {MS "QuickGelu", 1, quick_gelu, "alpha"},
    {MS "SkipLayerNormalization", 1, skip_layer_norm, "epsilon"},
    {MS "SkipSimplifiedLayerNormalization", 1, skip_rms_norm, "epsilon"},
    {"SimplifiedLayerNormalization", 1, simplified_norm, "axis epsilon stash_type"},
    {MS "EmbedLayerNormalization", 1, embed_layer_norm, "epsilon"},
};

}  // namespace

Rules contrib_rules() { return kRules; }

}  // namespace onnx_import
