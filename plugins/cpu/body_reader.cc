// body_reader.cc: see body_reader.h.
#include "plugins/cpu/body_reader.h"

#include <algorithm>
#include <string_view>

namespace keel_cpu {

std::optional<keel_body> BodyReader::BodyOfCall(const Node& node) {
  keel_body body = {sizeof(keel_body), 0, 0, 0, nullptr, nullptr};
  return node.host->node_body(node.node, &body) == KEEL_OK ? std::optional(body) : std::nullopt;
}
std::optional<keel_body> BodyReader::GraphOf(const Node& node, uint32_t i) {
  keel_body graph = {sizeof(keel_body), 0, 0, 0, nullptr, nullptr};
  return node.host->node_graph(node.node, i, &graph) == KEEL_OK ? std::optional(graph) : std::nullopt;
}

std::optional<BodyReader::Numbers> BodyReader::ReadNodes(const keel_body& graph, Numbers operands) {
  operands.resize(graph.n_values, KEEL_NO_VALUE);
  std::swap(operands, numbers_);
  const bool ok = std::all_of(graph.nodes, graph.nodes + graph.n_nodes,
                              [this](const keel_body_node& n) { return ReadNode(n); });
  Numbers results;
  for (uint32_t k = 0; k < graph.n_results; k++) results.push_back(numbers_[graph.results[k]]);
  std::swap(operands, numbers_);
  if (!ok || std::find(results.begin(), results.end(), KEEL_NO_VALUE) != results.end()) return std::nullopt;
  return results;
}

bool BodyReader::ReadNode(const keel_body_node& n) {
  const Node node{host_, n.node};
  Numbers in;
  for (uint32_t k = 0; k < n.n_in; k++) {
    const Number number = NumberOf(node, n, k);
    if (!number) return false;
    in.push_back(*number);
  }
  const std::string_view op = host_->node_op(n.node);
  if (op == "call") return ReadCall(node, n, std::move(in));
  if (n.n_out != 1) return false;
  const bool is_identity = op == "identity" || op == "stop_gradient";
  const Number out = is_identity ? in[0] : AddOp(node, n, in);
  if (out) numbers_[n.out] = *out;
  return out.has_value();
}
// A value that no node has produced is a constant.
BodyReader::Number BodyReader::NumberOf(const Node& node, const keel_body_node& n, uint32_t k) {
  const uint32_t value = n.in[k];
  if (value == KEEL_NO_VALUE) return std::nullopt;
  if (numbers_[value] == KEEL_NO_VALUE) {
    const keel_tensor t = node.In(k);
    const Number number = t.data != nullptr ? AddConstant(t) : std::nullopt;
    if (!number) return std::nullopt;
    numbers_[value] = *number;
  }
  return numbers_[value];
}
bool BodyReader::ReadCall(const Node& call, const keel_body_node& n, Numbers in) {
  const std::optional<keel_body> body = BodyOfCall(call);
  if (!body || body->n_results != n.n_out) return false;
  const std::optional<Numbers> results = ReadNodes(*body, std::move(in));
  if (!results) return false;
  std::copy(results->begin(), results->end(), numbers_.begin() + n.out);
  return true;
}

}  // namespace keel_cpu
