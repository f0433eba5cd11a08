// ahead.cc: products that a scan computes from single entries are computed for all entries at once before the
// scan: one large product instead of many small ones that each read the weights. Results are close (another
// summation order).
#include <algorithm>

#include "plugins/passes/loops/loops.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

// matmul(entry, weights) in a body.
struct Product {
  NodeId node = kNone;
  size_t entry = 0;            // the scan operand that the entry is from
  keel_value weights = kNone;  // a value outside the body
};

size_t number_of_param(const Edit::Body& body, const Loop& loop, keel_value v) {
  return static_cast<size_t>(std::find(body.params, body.params + loop.given, v) - body.params);
}

// The value outside the scan: a capture's operand, or a copy of a constant of the body.
keel_value outside(Edit& e, const Edit::Body& body, const Loop& loop, keel_value v) {
  const size_t param = number_of_param(body, loop, v);
  if (param >= loop.carry && param < loop.cut) return loop.in[param];
  if (!body.edit.constant(v)) return kNone;
  const Type t = body.edit.type(v);
  return e.constant(t.dtype, t.dims, t.data);
}

// All products are in memory together, so they must not be much larger than their operands.
bool is_slim(const Type& weights, bool transposed) {
  constexpr int64_t kMost = 16;
  const keel_dim k = weights.dims[transposed ? 1 : 0], n = weights.dims[transposed ? 0 : 1];
  return is_number(k) && is_number(n) && n <= kMost * k;
}

// An entry is a matrix, so that the product of all entries stacked is a batched one.
Product find(Edit& e, const Edit::Body& body, const Loop& loop) {
  const Edit& b = body.edit;
  for (NodeId n : b.nodes()) {
    if (!b.is(n, "matmul")) continue;
    const Ids in = b.ins(n);
    const size_t entry = number_of_param(body, loop, in[0]);
    if (entry < loop.cut || entry >= loop.given || b.type(in[0]).rank() < 2 || b.type(in[1]).rank() != 2 ||
        !is_slim(b.type(in[1]), b.integer(n, "tb") != 0))
      continue;
    e.at(loop.n);
    const keel_value weights = outside(e, body, loop, in[1]);
    if (weights != kNone) return {n, entry, weights};
  }
  return {};
}

bool ahead(Edit& e, NodeId n) {
  const Loop loop(e, n);
  if (!loop.pure || loop.counted) return false;
  const Edit::Body body = e.body(loop.body);
  const Product found = find(e, body, loop);
  if (found.node == kNone) return false;
  const Edit& b = body.edit;
  const Attrs flags = Attrs().as("ta", b.attr(found.node, "ta")).as("tb", b.attr(found.node, "tb"));
  const keel_value all = e.add("matmul", {loop.in[found.entry], found.weights}, flags);

  const bool read = !b.single_use(body.params[found.entry]);  // has other users too
  Ids in(loop.in), params(body.params, body.params + loop.given);
  if (read) {
    in.push_back(all);
    params.push_back(b.out(found.node));
  } else {
    in[found.entry] = all;
    params[found.entry] = b.out(found.node);
  }
  const int64_t graph = e.graph(loop.body, params, in, Ids(body.results, body.results + loop.out.size()));
  const Attrs attrs = Attrs()
                          .as("body", {KEEL_ATTR_GRAPH, 0, graph, 0, nullptr})
                          .i("carry", static_cast<int64_t>(loop.carry))
                          .i("invariants", static_cast<int64_t>(loop.cut - loop.carry))
                          .flag("reverse", e.integer(n, "reverse") != 0);
  const Ids made = e.add("scan", in, attrs, loop.out.size());
  for (size_t i = 0; i < made.size(); i++)
    if (!e.same_type(made[i], loop.out[i])) return false;
  for (size_t i = 0; i < made.size(); i++) e.redirect(loop.out[i], made[i]);
  return true;
}

constexpr Rule kRules[] = {{"scan", ahead}};

}  // namespace

void ahead(Edit& e) { apply(e, {kRules}); }

}  // namespace keel_passes
