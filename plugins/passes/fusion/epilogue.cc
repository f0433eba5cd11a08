// epilogue.cc: groups a product or convolution with the following bias, unary and binary ops, in order. The
// device computes them on the result while it is in the cache.
//
// The chain grows while each value has one user and keeps its type; then the device gets the longest chain
// that it accepts. Products of many rows by small constant weights that follow one another, as layers of a
// network, are offered together first: a device may take some rows at a time through all of them.
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
constexpr int64_t kManyRows = 1024, kMostBytes = 1 << 20;  // of layers, and of their weights
constexpr int kMostLayers = 8;

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

// Bytes of the constant matrix on the right of a product of many rows; else more than any layer has.
int64_t layer_bytes(const Edit& e, NodeId n) {
  const Type x = e.type(e.in(n, 0)), weights = e.type(e.in(n, 1));
  if (weights.data == nullptr || weights.rank() != 2 || x.rank() < 2) return kMostBytes + 1;
  const int64_t count = x.count();  // -1: not known yet
  if (count >= 0 && count < kManyRows * static_cast<int64_t>(x.dims.back())) return kMostBytes + 1;
  return weights.count() * width_of(weights.dtype);
}
// The nodes of two layers or more, or none.
std::vector<NodeId> layers_from(const Edit& e, NodeId root) {
  std::vector<NodeId> all;
  int64_t bytes = 0;
  int layers = 0;
  NodeId n = root;
  while (e.is(n, "matmul") && layers < kMostLayers) {
    bytes += layer_bytes(e, n);
    if (bytes > kMostBytes) break;
    const std::vector<NodeId> layer = chain_from(e, n);
    all.insert(all.end(), layer.begin(), layer.end());
    layers++;
    const keel_value v = e.out(all.back());
    if (!e.single_use(v)) break;
    n = e.users(v)[0];
    if (e.in(n, 0) != v) break;
  }
  return layers > 1 ? all : std::vector<NodeId>();
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

// All layers as one group, or each as one.
void claim_layers(const Edit& e, NodeId root, Claims* claims) {
  std::vector<NodeId> layers = layers_from(e, root);
  if (layers.empty()) return claims->beginning(chain_from(e, root));
  if (claims->whole(&layers)) return;
  const auto is_product = [&](NodeId n) { return e.is(n, "matmul"); };
  for (auto begin = layers.begin(); begin != layers.end();) {
    const auto end = std::find_if(begin + 1, layers.end(), is_product);
    claims->beginning({begin, end});
    begin = end;
  }
}

}  // namespace

void epilogue(Edit& e) {
  Claims chains(e, "epilogue", 2), moves(e, "moves", 2);
  for (NodeId n : e.nodes()) {
    if (!e.alive(n)) continue;
    if (is_root(e.op(n)))
      claim_layers(e, n, &chains);
    else if (e.is(n, "attention"))
      claim_moves(e, n, &moves);
  }
}

}  // namespace keel_passes
