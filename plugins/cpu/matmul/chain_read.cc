// chain_read.cc: the stages of a chain; see chain.h.
#include <algorithm>
#include <string_view>

#include "plugins/cpu/matmul/chain.h"
#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/matmul.h"

namespace keel_cpu {

ChainBody::ChainBody(const Node& call) : host_(call.host), operands_(OperandsOf(call)) {
  keel_body body = {};
  body.struct_size = sizeof(body);
  if (host_->node_body(call.node, &body) != KEEL_OK || body.n_results != 1 || !Read(body) ||
      body.results[0] != made_)
    stages.clear();
}

bool ChainBody::Read(const keel_body& body) {
  for (uint32_t i = 0; i < body.n_nodes; i++) {
    const keel_body_node& n = body.nodes[i];
    const bool is_product = host_->node_op(n.node) == std::string_view("matmul");
    if (n.n_out != 1 || !(is_product ? Begin(n) : Add(n))) return false;
  }
  for (ChainStage& s : stages) {
    s.body = {sizeof(keel_body), static_cast<uint32_t>(s.nodes.size()), 0, 0, s.nodes.data(), nullptr};
    const auto n_in = static_cast<uint32_t>(operands_.size());
    s.body.n_values = n_in + 1 + s.body.n_nodes;
    s.map = {host_, operands_, &s.body, s.body.n_nodes, {{s.body.n_values - 1, s.y}}};
    s.map.operands.push_back(s.y);  // as its product
  }
  return body.n_nodes > 1;
}

// The next stage.
bool ChainBody::Begin(const keel_body_node& matmul) {
  const auto n_in = static_cast<uint32_t>(operands_.size());
  if (matmul.in[1] >= n_in || (stages.empty() ? matmul.in[0] >= n_in : matmul.in[0] != made_)) return false;
  stages.emplace_back();
  stages.back().matmul = &matmul;
  stages.back().y = Node{host_, matmul.node}.Out(0);
  made_ = matmul.out;
  return true;
}

// An elementwise node of the last stage: of operands of the call and of values of the stage.
bool ChainBody::Add(const keel_body_node& node) {
  if (stages.empty()) return false;
  ChainStage& s = stages.back();
  const auto n_in = static_cast<uint32_t>(operands_.size());
  const uint32_t first = s.matmul->out;
  const keel_tensor y = Node{host_, node.node}.Out(0);
  if (TypeOf(y) != TypeOf(s.y) || DimsOf(y) != DimsOf(s.y)) return false;
  s.in.emplace_back();
  for (uint32_t i = 0; i < node.n_in; i++) {
    if (node.in[i] >= n_in && (node.in[i] < first || node.in[i] == KEEL_NO_VALUE)) return false;
    s.in.back().push_back(node.in[i] < n_in ? node.in[i] : node.in[i] - first + n_in);
  }
  s.nodes.push_back({node.node, s.in.back().data(), node.n_in, 1, node.out - first + n_in, 0});
  made_ = node.out;
  return true;
}

// What layers save as one launch pays for products that oneDNN computes in this part of the time.
bool ChainBody::OwnLoopsAreFast() const {
  constexpr double kMost = 1.1;
  double own = 0, best = 0;
  for (const ChainStage& s : stages) {
    const MatmulShape shape = ReadMatmul(Product(s));
    const double percent = TypeOf(s.y) == KEEL_F32 ? OwnPercent(shape, true) : 100;
    own += static_cast<double>(shape.Work()) * percent;
    best += static_cast<double>(shape.Work()) * std::min(percent, 100.0);
  }
  return own <= kMost * best;
}

bool ChainBody::Fits() const {
  for (const ChainStage& s : stages) {
    const Node product = Product(s);
    if (!HasDims(s.y) || !HasDims(product.In(0)) || !HasDims(product.In(1))) return false;
    if (!s.nodes.empty() && !FitsMap(s.map)) return false;
    const MatmulShape shape = ReadMatmul(product);
    const bool constant = Right(s).data != nullptr;
    if (stages.size() > 1 && (shape.ta || shape.Batches() != 1 || !constant)) return false;
    if (stages.size() == 1 && TypeOf(s.y) == KEEL_F32 && PrefersOneDnn(shape, constant)) return false;
  }
  return !stages.empty() && operands_.size() < kMapOperands && (stages.size() == 1 || OwnLoopsAreFast());
}

bool IsChain(const Node& call) { return ChainBody(call).Fits(); }

}  // namespace keel_cpu
