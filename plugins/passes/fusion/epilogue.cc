// epilogue.cc: groups a product or convolution with the following bias, unary and binary ops, in order. The
// device computes them on the result while it is in the cache.
//
// The chain grows while each value has one user and keeps its type; then the device gets the longest chain
// that it accepts.
//
// An attention is grouped with the moves of its rows that have no other use: transposes of heads and rows,
// and concatenations in front that join rows of its keys or values, such as a new token's with kept ones. The
// device may read and write the rows where they are.
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

bool turns_heads(const Edit& e, NodeId n) {
  return e.is(n, "transpose") && e.list(n, "perm") == Ints{0, 2, 1, 3};
}

bool joins_rows(const Edit& e, NodeId n) {
  return e.is(n, "concat") && e.integer(n, "axis") + 2 == static_cast<int64_t>(e.type(e.out(n)).rank());
}

// Adds the nodes that move rows to v, for one user alone.
void add_moves_before(const Edit& e, keel_value v, bool may_join, std::vector<NodeId>* group) {
  const NodeId n = e.producer(v);
  if (n == kNone || !e.single_use(v)) return;
  const bool joins = may_join && joins_rows(e, n);
  if (!joins && !turns_heads(e, n)) return;
  for (size_t i = 0; joins && i < e.ins(n).size(); i++) add_moves_before(e, e.in(n, i), false, group);
  group->push_back(n);
}

std::vector<NodeId> with_moves(const Edit& e, NodeId attention) {
  std::vector<NodeId> group;
  for (size_t i = 0; i < 3; i++) add_moves_before(e, e.in(attention, i), i > 0, &group);
  group.push_back(attention);
  const keel_value y = e.out(attention);
  if (e.single_use(y) && turns_heads(e, e.users(y)[0])) group.push_back(e.users(y)[0]);
  return group;
}

// If the device refuses, the result stays as attention makes it.
void claim_moves(const Edit& e, NodeId attention, Claims* claims) {
  std::vector<NodeId> group = with_moves(e, attention);
  if (claims->whole(&group) || e.is(group.back(), "attention")) return;
  group.pop_back();
  claims->whole(&group);
}

}  // namespace

void epilogue(Edit& e) {
  Claims chains(e, "epilogue", 2), moves(e, "moves", 2);
  for (NodeId n : e.nodes()) {
    if (!e.alive(n)) continue;
    if (is_root(e.op(n)))
      chains.beginning(chain_from(e, n));
    else if (e.is(n, "attention"))
      claim_moves(e, n, &moves);
  }
}

}  // namespace keel_passes
