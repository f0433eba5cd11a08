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

}  // namespace onnx_import
