// epilogue.cc: products by cuBLASLt that add a bias to each row, another matrix, or both: calls that the pass
// `epilogue` makes. A body that is not worth it runs op by op.
#include <optional>

#include "product.h"

namespace keel_cuda {
namespace {

struct Chain {
  ProductShape shape;
  std::vector<uint32_t> operands;  // a, b, c
  std::optional<uint32_t> bias, matrix;
};

bool HasDims(const keel_tensor& t) {
  return std::all_of(t.shape, t.shape + t.ndim, [](int64_t dim) { return dim >= 0; });
}
bool IsVector(const keel_tensor& t, int64_t columns) {
  return t.ndim && t.shape[t.ndim - 1] == columns && product(t.shape, t.shape + t.ndim) == columns;
}

// Adds `other` to the chain's product: as its bias, or as the matrix.
bool AddOperand(const keel_tensor& other, uint32_t number, const keel_tensor& sum, Chain* chain) {
  const bool is_bias =
      IsVector(other, chain->shape.columns) && sum.shape[sum.ndim - 1] == other.shape[other.ndim - 1];
  const bool is_matrix = std::equal(other.shape, other.shape + other.ndim, sum.shape, sum.shape + sum.ndim);
  std::optional<uint32_t>& place = is_bias ? chain->bias : chain->matrix;
  if (place || (!is_bias && !is_matrix)) return false;
  place = number;
  return true;
}

// A node of the body after the product, whose result is value v.
bool Extend(Op& of, const keel_body_node& n, uint32_t v, Chain* chain) {
  Op add(of.device, of.host, n.node);
  if (std::string_view(of.host->node_op(n.node)) != "add" || n.n_in != 2 || n.in[0] == n.in[1]) return false;
  const uint32_t side = n.in[0] == v ? 1 : 0;
  if (n.in[1 - side] != v || n.in[side] >= of.n_in) return false;
  const keel_tensor sum = add.Out(0), other = add.In(side), before = add.In(1 - side);
  const bool same = std::equal(sum.shape, sum.shape + sum.ndim, before.shape, before.shape + before.ndim);
  return !add.rc && same && HasDims(other) && AddOperand(other, n.in[side], sum, chain);
}

std::optional<Chain> Read(Op& of) {
  keel_body body{};
  body.struct_size = sizeof body;
  if (of.rc || of.host->node_body(of.node, &body) || body.n_nodes < 2 || body.n_results != 1) return {};
  const keel_body_node& first = body.nodes[0];
  if (std::string_view(of.host->node_op(first.node)) != "matmul") return {};
  Op matmul(of.device, of.host, first.node);
  if (!IsFloat(matmul.Out(0)) || !HasDims(matmul.In(0)) || !HasDims(matmul.In(1)) || first.in[0] >= of.n_in ||
      first.in[1] >= of.n_in)
    return {};
  const Product p = WithRowsOfBatches(MatmulOf(matmul));
  const std::optional<ProductShape> shape = LargeShape(matmul, p, matmul.Int("ta"), matmul.Int("tb"));
  if (matmul.rc || !shape || std::min(p.rows, p.columns) <= kMostVectors) return {};
  Chain chain = {*shape, {first.in[0], first.in[1], of.Result()}, {}, {}};
  uint32_t v = first.out;
  for (uint32_t i = 1; i < body.n_nodes; v = body.nodes[i++].out)
    if (!Extend(of, body.nodes[i], v, &chain)) return {};
  if (body.results[0] != v) return {};
  chain.shape.bias = chain.bias.has_value(), chain.shape.matrix = chain.matrix.has_value();
  for (const std::optional<uint32_t>& more : {chain.bias, chain.matrix})
    if (more) chain.operands.push_back(*more);
  return chain;
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* node) {
  Op op(d, host, node);
  return HasBlas() && Read(op).has_value();
}

void Epilogue(Op& op) {
  const std::optional<Chain> chain = Read(op);
  if (!op.rc && chain) op.rc = FindProduct(op.device, chain->shape, &op.work.product);
  if (!op.rc && !op.work.product) op.rc = KEEL_UNIMPLEMENTED;
  if (!op.rc) op.work.steps = {{nullptr, 0, chain->operands, {}}};
}

}  // namespace

Impls EpilogueImpls() {
  return {{"call", 1, 1, nullptr, "cuBLASLt, with sums", 1, 0, Guarded<Match>, Guarded<Prepared<Epilogue>>,
           nullptr}};
}

}  // namespace keel_cuda
