// loop.cc: see loop.h.
#include "plugins/onnx/ops/loop.h"

namespace onnx_import {
namespace {

Terms parameters(Edit& body, const Terms& of, const char* prefix, bool entries) {
  Terms made;
  for (const Term& t : of) {
    const Dims dims = entries ? without(t.dims(), 0) : t.dims();
    made.emplace_back(body, body.param(cat(prefix, made.size()), t.dtype(), dims));
  }
  return made;
}

}  // namespace

Terms scan(Edit& e, const ScanOperands& operands, const ScanBody& body) {
  keel_attr graph = {KEEL_ATTR_GRAPH, 0, 0, 0, nullptr};
  Edit inner = e.new_graph(&graph.i);
  const Terms carried = parameters(inner, operands.carried, "c", false),
              invariants = parameters(inner, operands.invariants, "i", false),
              scanned = parameters(inner, operands.scanned, "x", true);
  const Terms results = body(carried, invariants, scanned);
  for (size_t k = 0; k < results.size(); k++) inner.result(cat("y", k), results[k].v);
  Ids in;
  for (const Terms* list : {&operands.carried, &operands.invariants, &operands.scanned})
    for (const Term& t : *list) in.push_back(t.v);
  const Ids out = e.ops("scan", in,
                        Attrs()
                            .as("body", graph)
                            .i("carry", static_cast<int64_t>(carried.size()))
                            .i("invariants", static_cast<int64_t>(invariants.size()))
                            .flag("reverse", operands.reverse),
                        static_cast<uint32_t>(results.size()));
  Terms terms;
  for (keel_value v : out) terms.emplace_back(e, v);
  return terms;
}

Term cond(Edit& e, const Term& p, const Terms& operands, const Branch& then, const Branch& otherwise) {
  const auto graph = [&](const Branch& branch) {
    keel_attr made = {KEEL_ATTR_GRAPH, 0, 0, 0, nullptr};
    Edit inner = e.new_graph(&made.i);
    inner.result("y", branch(parameters(inner, operands, "x", false)).v);
    return made;
  };
  const keel_attr first = graph(then), second = graph(otherwise);
  Ids in = {p.v};
  for (const Term& t : operands) in.push_back(t.v);
  return {e, e.op("cond", in, Attrs().as("then", first).as("else", second))};
}

}  // namespace onnx_import
