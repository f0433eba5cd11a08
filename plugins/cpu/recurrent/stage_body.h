// stage_body.h: the ops of one stage as the body of a map.
#pragma once

#include "plugins/cpu/map/map.h"
#include "plugins/cpu/recurrent/form.h"

namespace keel_cpu {

// Operands are the values from elsewhere.
class StageBody {
 public:
  StageBody(const Node& scan, const RecurrentForm& form, uint32_t stage) {
    std::vector<uint32_t> number(form.values.size(), KEEL_NO_VALUE);
    for (const StepOp& op : form.ops)
      if (op.stage == stage) Read(op, form, stage, &number);
    uint32_t next = static_cast<uint32_t>(operands.size());
    for (const StepOp& op : form.ops) {
      if (op.stage != stage) continue;
      in_.emplace_back();
      for (uint32_t v : op.in) in_.back().push_back(number[v]);
      nodes_.push_back({op.node, in_.back().data(), static_cast<uint32_t>(op.in.size()), 1, next, 0});
      number[op.out] = next++;
      if (form.values[op.out].is_kept) results.push_back(op.out);
    }
    body_ = {sizeof(keel_body), static_cast<uint32_t>(nodes_.size()), next, 0, nodes_.data(), nullptr};
    map = {scan.host, {}, &body_, body_.n_nodes, {}};
    for (uint32_t v : operands) map.operands.push_back(TypeOfValue(form.values[v]));
    for (uint32_t v : results) map.outputs.push_back({number[v], TypeOfValue(form.values[v])});
  }
  StageBody(const StageBody&) = delete;
  StageBody& operator=(const StageBody&) = delete;

  std::vector<uint32_t> operands, results;  // values of the form
  MapBody map;

 private:
  static keel_tensor TypeOfValue(const StepValue& v) {
    keel_tensor t = {};
    t.ndim = static_cast<int32_t>(v.dims.size());
    t.dtype = DtypeOf(v.dtype);
    t.shape = const_cast<int64_t*>(v.dims.data());
    return t;
  }
  void Read(const StepOp& op, const RecurrentForm& form, uint32_t stage, std::vector<uint32_t>* number) {
    for (uint32_t v : op.in) {
      const StepValue& x = form.values[v];
      if ((x.kind == StepValue::kComputed && x.stage == stage) || (*number)[v] != KEEL_NO_VALUE) continue;
      (*number)[v] = static_cast<uint32_t>(operands.size());
      operands.push_back(v);
    }
  }

  std::deque<std::vector<uint32_t>> in_;
  std::vector<keel_body_node> nodes_;
  keel_body body_;
};

}  // namespace keel_cpu
