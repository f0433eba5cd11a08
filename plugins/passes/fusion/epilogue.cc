// epilogue.cc: groups a product or convolution with the following bias, unary and binary ops, in order. The
// device computes them on the result while it is in the cache.
//
// The chain grows while each value has one user and keeps its type; then the device gets the longest chain
// that it accepts.
#include <algorithm>

#include "plugins/passes/edit/elementwise.h"
#include "plugins/passes/fusion/regions.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

constexpr size_t kLongest = 16;

bool is_integer_root(std::string_view op) { return op == "matmul_integer"; }
bool is_root(std::string_view op) {
  return op == "matmul" || op == "conv" || op == "conv_grad_x" || is_integer_root(op);
}

// casts: whether n may have another dtype.
bool extends(const Edit& e, keel_value v, NodeId n, bool casts) {
  if (!is_binary(e, n) && !(is_unary(e, n) && e.in(n, 0) == v)) return false;
  return e.same_type(v, e.out(n)) || (casts && e.type(v).dims == e.type(e.out(n)).dims);
}

std::vector<NodeId> chain_from(const Edit& e, NodeId root) {
  std::vector<NodeId> chain = {root};
  for (keel_value v = e.out(root); chain.size() < kLongest && e.single_use(v); v = e.out(chain.back())) {
    const NodeId next = e.users(v)[0];
    if (!extends(e, v, next, is_integer_root(e.op(root)))) break;
    chain.push_back(next);
  }
  return chain;
}

}  // namespace

void epilogue(Edit& e) {
  Claims claims(e, "epilogue", 2);
  for (NodeId n : e.nodes()) {
    if (!e.alive(n) || !is_root(e.op(n))) continue;
    claims.beginning(chain_from(e, n));
  }
}

}  // namespace keel_passes
