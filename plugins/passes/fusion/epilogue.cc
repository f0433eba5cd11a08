// epilogue.cc: groups a product or convolution with the following bias, unary and binary ops, in order. The
// device computes them on the result while it is in the cache.
//
// The chain grows while each value has one user and keeps its type; then the device gets the longest chain
// that it accepts.
//
// An attention is grouped with the concatenations in front of it that join rows of its keys or values, such
// as a new token's with kept rows: the device may read the rows where they are.
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

// The node that joins the rows of v for one user alone; kNone: v is no such result.
NodeId joins_rows(const Edit& e, keel_value v) {
  const NodeId n = e.made_by(v, "concat");
  const bool rows = n != kNone && e.integer(n, "axis") + 2 == static_cast<int64_t>(e.type(v).rank());
  return rows && e.single_use(v) ? n : kNone;
}

// In program order; empty if nothing is joined.
std::vector<NodeId> with_joined_rows(const Edit& e, NodeId attention) {
  const NodeId keys = joins_rows(e, e.in(attention, 1)), values = joins_rows(e, e.in(attention, 2));
  std::vector<NodeId> group;
  if (keys == kNone && values == kNone) return group;
  for (NodeId n : e.nodes())
    if (n == attention || n == keys || n == values) group.push_back(n);
  return group;
}

}  // namespace

void epilogue(Edit& e) {
  Claims claims(e, "epilogue", 2), joined(e, "joined", 2);
  for (NodeId n : e.nodes()) {
    if (!e.alive(n)) continue;
    if (is_root(e.op(n))) claims.beginning(chain_from(e, n));
    if (e.is(n, "attention")) {
      std::vector<NodeId> group = with_joined_rows(e, n);
      joined.whole(&group);
    }
  }
}

}  // namespace keel_passes
