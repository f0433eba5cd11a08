// attention_call.cc: reads a `call` of an attention, transposes of its operands and result between
// [batch, rows, heads, columns] and [batch, heads, rows, columns], as dense layers give and take them, and
// concatenations of rows of its keys or values, as of a decoder that adds a token to kept ones. Nothing is
// copied: the launch reads and writes rows where they are.
#include <algorithm>

#include "plugins/cpu/matmul/attention.h"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {
namespace {

class AttentionCall {
 public:
  // False: the body is of another form.
  bool Read(const Node& call) {
    if (!ReadBody(call, &body_)) return false;
    const auto found = std::find_if(body_.nodes.begin(), body_.nodes.end(),
                                    [](const BodyNode& n) { return n.op == "attention"; });
    if (found == body_.nodes.end() || body_.results.size() != 1) return false;
    attention_ = &*found;
    const std::vector<uint32_t>& in = attention_->in;
    const bool masked = in.size() > 3 && in[3] != kNone;
    if (masked && !IsGiven(in[3])) return false;
    form_.mask = masked ? static_cast<int>(in[3]) : -1;
    return ReadRows(in[0], false, &form_.q) && ReadRows(in[1], true, &form_.k) &&
           ReadRows(in[2], true, &form_.v) && ReadResult() && read_ == body_.nodes.size();
  }
  const Node& Attention() const { return attention_->node; }
  const AttentionForm& Form() const { return form_; }
  keel_dt DType() const { return body_.values[attention_->out[0]].dtype; }

 private:
  bool IsGiven(uint32_t value) const { return body_.values[value].producer == kNone; }
  // The producer, which is read once, or null.
  const BodyNode* Producer(uint32_t value) {
    if (IsGiven(value) || body_.values[value].users.size() > 1) return nullptr;
    read_++;
    return &body_.nodes[body_.values[value].producer];
  }
  static bool Turns(const BodyNode& n) {
    return n.op == "transpose" && n.node.List("perm") == Dims{0, 2, 1, 3};
  }
  bool ReadRows(uint32_t value, bool may_join, AttentionRows* rows) {
    if (IsGiven(value)) return AddPart(value, false, rows);
    const BodyNode* n = Producer(value);
    if (n == nullptr) return false;
    if (Turns(*n)) return IsGiven(n->in[0]) && AddPart(n->in[0], true, rows);
    const auto rank = static_cast<int64_t>(body_.values[value].dims.size());
    return may_join && n->op == "concat" && n->node.Int("axis") == rank - 2 &&
           std::all_of(n->in.begin(), n->in.end(), [&](uint32_t v) { return ReadRows(v, false, rows); });
  }
  bool AddPart(uint32_t value, bool turned, AttentionRows* rows) {
    const Dims& dims = body_.values[value].dims;
    const size_t rank = dims.size();
    if (rank < 2) return false;
    rows->parts.push_back({static_cast<int>(value), dims[rank - (turned ? 3 : 2)], turned});
    return true;
  }
  bool ReadResult() {
    const uint32_t made = attention_->out[0];
    read_++;
    if (body_.results[0] == made) return true;
    const uint32_t producer = body_.values[body_.results[0]].producer;
    if (producer == kNone) return false;
    const BodyNode& n = body_.nodes[producer];
    read_++;
    form_.result_turned = true;
    return Turns(n) && n.in[0] == made && CanTurnResult(attention_->node);
  }

  Body body_;
  const BodyNode* attention_ = nullptr;
  AttentionForm form_;
  size_t read_ = 0;  // nodes
};

}  // namespace

bool IsAttentionCall(const Node& node) {
  AttentionCall call;
  return call.Read(node) && (call.DType() == KEEL_F32 || call.DType() == KEEL_F64);
}

keel_rc PrepareAttentionCall(const Node& node, keel_launch* launch) {
  AttentionCall call;
  if (!call.Read(node))
    Throw(KEEL_UNIMPLEMENTED, "the body of this call is not an attention and moves of its rows");
  return KeepAttention(call.Attention(), call.Form(), launch);
}

}  // namespace keel_cpu
