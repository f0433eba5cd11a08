// attention_joined.cc: reads a `call` of an attention and the concatenations of its keys or values.
#include <algorithm>
#include <optional>
#include <string_view>

#include "plugins/cpu/matmul/attention.h"

namespace keel_cpu {
namespace {

class Joined {
 public:
  explicit Joined(const Node& call) : call_(call) {
    body_.struct_size = sizeof(body_);
    if (call.host->node_body(call.node, &body_) != KEEL_OK) body_.n_nodes = 0;
  }
  Node Attention() const { return {call_.host, body_.nodes[body_.n_nodes - 1].node}; }
  // Nothing if the body is another one.
  std::optional<AttentionOperands> Operands() const {
    if (body_.n_nodes < 2 || body_.n_results != 1 || !IsOp(body_.nodes[body_.n_nodes - 1], "attention"))
      return {};
    const keel_body_node& n = body_.nodes[body_.n_nodes - 1];
    const bool masked = n.n_in > 3 && n.in[3] != KEEL_NO_VALUE;
    if (n.out != body_.results[0] || !IsGiven(n.in[0]) || (masked && !IsGiven(n.in[3]))) return {};
    AttentionOperands all = {static_cast<int>(n.in[0]), masked ? static_cast<int>(n.in[3]) : -1, {}, {}};
    const bool reads = ReadRows(n.in[1], &all.k) && ReadRows(n.in[2], &all.v);
    return reads ? std::optional(std::move(all)) : std::nullopt;
  }

 private:
  bool IsOp(const keel_body_node& n, std::string_view op) const { return call_.host->node_op(n.node) == op; }
  bool IsGiven(uint32_t value) const { return value < call_.InCount(); }
  bool ReadRows(uint32_t value, AttentionRows* rows) const {
    if (IsGiven(value)) return AddPart(value, rows);
    for (uint32_t i = 0; i + 1 < body_.n_nodes; i++) {
      const keel_body_node& n = body_.nodes[i];
      if (n.out != value) continue;
      const Node concat = {call_.host, n.node};
      return IsOp(n, "concat") && concat.Int("axis") == concat.Out(0).ndim - 2 &&
             std::all_of(n.in, n.in + n.n_in, [&](uint32_t v) { return IsGiven(v) && AddPart(v, rows); });
    }
    return false;
  }
  bool AddPart(uint32_t operand, AttentionRows* rows) const {
    const keel_tensor t = call_.In(operand);
    rows->parts.push_back({static_cast<int>(operand), t.ndim < 2 ? 0 : t.shape[t.ndim - 2]});
    return t.ndim >= 2;
  }

  const Node& call_;
  keel_body body_ = {};
};

}  // namespace

bool IsJoinedAttention(const Node& call) {
  const Joined joined(call);
  if (!joined.Operands()) return false;
  const keel_tensor q = joined.Attention().In(0);
  return TypeOf(q) == KEEL_F32 || TypeOf(q) == KEEL_F64;
}

keel_rc PrepareJoinedAttention(const Node& call, keel_launch* launch) {
  const Joined joined(call);
  std::optional<AttentionOperands> operands = joined.Operands();
  if (!operands)
    Throw(KEEL_UNIMPLEMENTED, "the body of this call is not an attention and concatenations of its rows");
  return KeepAttention(joined.Attention(), std::move(*operands), launch);
}

}  // namespace keel_cpu
