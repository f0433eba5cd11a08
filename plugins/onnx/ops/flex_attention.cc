// flex_attention.cc: FlexAttention: attention whose scores and probabilities pass through graphs of the
// model.
#include <cmath>

#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

// Each key head serves several query heads.
Term repeated_heads(const Term& x, keel_dim heads) {
  Edit& e = x.edit();
  const Dims d = x.dims();
  if (e.is(d[1], heads)) return x;
  return x.unsqueeze(2)
      .broadcast({d[0], d[1], e.div(heads, d[1]), d[2], d[3]})
      .reshape({d[0], heads, d[2], d[3]});
}

Term scaled(Call& c, const Term& x) {
  if (c.has_attribute("scale")) return x * std::sqrt(c.f("scale", 0));
  return x / x.to(KEEL_F32).size(c.dims(0)[3]).op("sqrt").op("sqrt").to(x.dtype());
}

}  // namespace

void Importer::convert_flex_attention(Call& call, const Scope& scope) {
  for (size_t i = 0; i < 3; i++)
    if (call.rank(i) != 4) call.invalid(cat("operand ", i, " has ", call.rank(i), " dims; expected 4"));
  const keel_dim heads = call.dims(0)[1];
  const Term q(call, 0), k = repeated_heads(Term(call, 1), heads), v = repeated_heads(Term(call, 2), heads);
  const keel_dt inner = call.type("softmax_precision", wide(call.dtype(0)));
  Term scores = scaled(call, q).op("matmul", scaled(call, k), Attrs().flag("tb", true)).to(inner);
  bool missing = false;
  const auto modified = [&](Text name, const Term& x) {
    const Attribute* a = call.attribute(name);
    if (!a || !a->graph) return x;
    auto value = std::make_shared<Value>();
    value->id = x.v;
    const std::vector<ValueP> out = inline_graph(*a->graph, {value}, call, scope);
    if (out.size() != 1) call.invalid(cat(name, " has ", out.size(), " results; expected 1"));
    missing = missing || out[0]->missing;
    return out[0]->missing ? x : Term(call.e, call.e.id(*out[0])).to(inner);
  };
  const Term p = modified("prob_mod", modified("score_mod", scores).op("softmax", Attrs().i("axis", 3)));
  if (missing) return call.mark_missing();
  call.set(0, p.op("matmul", v.to(inner)).to(call.dtype(2)).v);
}

}  // namespace onnx_import
