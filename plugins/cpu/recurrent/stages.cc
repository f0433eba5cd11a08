// stages.cc: products and biases become sums, and all ops get their stages; see form.h.
#include <algorithm>
#include <string_view>

#include "plugins/cpu/recurrent/form.h"

namespace keel_cpu {
namespace {

using Kind = StepValue::Kind;
constexpr int64_t kFull = 32;  // a multiple of so many units has full panels in every class

// Whether a value has the rows of the state.
bool HasRows(const RecurrentForm& f, const StepValue& v) {
  const int64_t rows = v.dims[0], state = f.state[0];
  return rows < 0 || state < 0 ? v.rows == f.rows : rows == state;
}
// Whether it has one element, one row or all rows in each column.
bool IsOfStep(const RecurrentForm& f, const StepValue& v) {
  const size_t rank = v.dims.size();
  if (rank > 2 || (rank == 2 && v.dims[0] != 1 && !HasRows(f, v))) return false;
  return rank == 0 || v.dims[rank - 1] == 1 || v.dims[rank - 1] == f.units;
}
// Whether it has the state's dims.
bool IsFull(const RecurrentForm& f, const StepValue& v) {
  return v.dims.size() == 2 && v.dims[1] == f.units && HasRows(f, v);
}

// Moves additions of products into sums.
class Adder {
 public:
  explicit Adder(RecurrentForm* form) : f_(*form), user_(f_.values.size(), KEEL_NO_VALUE) {
    for (uint32_t k = 0; k < f_.ops.size(); k++)
      for (uint32_t v : f_.ops[k].in) user_[v] = k;
  }
  bool Run(const Node& scan) {
    is_gone_.assign(f_.ops.size(), false);
    for (uint32_t v = 0; v < user_.size(); v++)
      if (f_.values[v].kind == Kind::kPart && user_[v] != KEEL_NO_VALUE && !is_added_[v] && !MakeSum(v, scan))
        return false;
    std::vector<StepOp> left;
    for (size_t k = 0; k < f_.ops.size(); k++)
      if (!is_gone_[k]) left.push_back(std::move(f_.ops[k]));
    f_.ops = std::move(left);
    return true;
  }

 private:
  bool IsAdd(uint32_t op, const Node& scan) const {
    return op != KEEL_NO_VALUE && std::string_view(scan.host->node_op(f_.ops[op].node)) == "add";
  }
  // Whether the value may be in the sum: a part, a first term, or a sum of such that has no other use.
  bool Take(uint32_t v, Sum* sum, std::vector<uint32_t>* parts, std::vector<uint32_t>* gone,
            const Node& scan) const {
    const StepValue& x = f_.values[v];
    if (x.uses != 1 && x.kind != Kind::kInvariant && x.kind != Kind::kConstant) return false;
    if (x.kind == Kind::kPart) {
      if (x.dims != f_.state) return false;
      sum->parts.push_back({x.number, x.first, x.column});
      sum->stage = std::max(sum->stage, x.stage);
      parts->push_back(v);
      return true;
    }
    if (x.kind == Kind::kComputed) {
      if (!IsAdd(x.op, scan)) return false;
      gone->push_back(x.op);
      const std::vector<uint32_t>& in = f_.ops[x.op].in;
      return Take(in[0], sum, parts, gone, scan) && Take(in[1], sum, parts, gone, scan);
    }
    const bool same = x.kind == Kind::kInvariant || x.kind == Kind::kConstant;
    if (!same || !IsOfStep(f_, x) || x.dims.empty() || x.dims.back() != f_.units || x.dtype != KEEL_F32 ||
        f_.units % kFull != 0)
      return false;
    sum->starts.push_back(v);
    return true;
  }
  // False: the part is no gate.
  bool MakeSum(uint32_t v, const Node& scan) {
    const StepValue& part = f_.values[v];
    if (part.dims != f_.state) return false;
    Sum sum = {{{part.number, part.first, part.column}}, {}, part.stage};
    std::vector<uint32_t> parts = {v}, gone;
    uint32_t at = v;
    while (f_.values[at].uses == 1 && IsAdd(user_[at], scan)) {
      const StepOp& op = f_.ops[user_[at]];
      if (f_.values[op.out].is_kept) break;  // products read values, not sums
      Sum more = sum;
      std::vector<uint32_t> more_parts = parts, more_gone = gone;
      more_gone.push_back(user_[at]);
      if (op.in[0] == op.in[1] || !Take(op.in[op.in[0] == at ? 1 : 0], &more, &more_parts, &more_gone, scan))
        break;
      sum = more, parts = more_parts, gone = more_gone;
      at = op.out;
    }
    for (uint32_t p : parts) is_added_[p] = true;
    for (uint32_t k : gone) is_gone_[k] = true;
    StepValue& to = f_.values[at];
    to.kind = Kind::kSum, to.stage = sum.stage, to.number = static_cast<uint32_t>(f_.sums.size());
    f_.sums.push_back(std::move(sum));
    return true;
  }

  RecurrentForm& f_;
  std::vector<uint32_t> user_;  // the last op that reads a value
  std::vector<bool> is_gone_;   // by op
  std::vector<bool> is_added_ = std::vector<bool>(f_.values.size());
};

// Ops are computed in the stage that reads them first, so few values are kept for another.
void PlaceOps(RecurrentForm* form) {
  constexpr uint32_t kNever = UINT32_MAX;
  std::vector<uint32_t> read(form->values.size(), kNever);  // the first stage that does
  for (uint32_t v : form->results) read[v] = form->values[v].stage;
  for (const StepProduct& p : form->products)
    if (form->values[p.left].kind == Kind::kComputed) read[p.left] = std::min(read[p.left], p.stage - 1);
  for (auto op = form->ops.rbegin(); op != form->ops.rend(); ++op) {
    StepValue& y = form->values[op->out];
    if (read[op->out] != kNever) y.stage = op->stage = read[op->out];
    for (uint32_t i : op->in) read[i] = std::min(read[i], op->stage);
  }
}

// A sum is made in the stage whose ops read it: all its operands are there yet. Ops of two stages must not.
bool PlaceSums(RecurrentForm* form) {
  std::vector<bool> is_placed(form->sums.size());
  for (const StepOp& op : form->ops)
    for (uint32_t i : op.in) {
      StepValue& x = form->values[i];
      if (x.kind != Kind::kSum) continue;
      if (is_placed[x.number] && x.stage != op.stage) return false;
      is_placed[x.number] = true;
      x.stage = form->sums[x.number].stage = op.stage;
    }
  return std::find(is_placed.begin(), is_placed.end(), false) == is_placed.end();
}

// Stages after sums were made, which values are kept, and whether all dims are as form.h says.
bool Settle(RecurrentForm* form) {
  RecurrentForm& f = *form;
  for (StepOp& op : f.ops) {
    for (uint32_t i : op.in) {
      StepValue& x = f.values[i];
      if (x.kind == Kind::kPart || !IsOfStep(f, x)) return false;
      if (x.kind == Kind::kComputed && x.stage < op.stage) x.is_kept = true;
    }
    f.stages = std::max(f.stages, op.stage + 1);
  }
  for (uint32_t v : f.results) {
    StepValue& y = f.values[v];
    if (y.kind != Kind::kComputed) return false;
    y.is_kept = true;
  }
  for (uint32_t i = 0; i < f.carry; i++)
    if (!IsFull(f, f.values[i]) ||
        std::count(f.results.begin(), f.results.begin() + f.carry, f.results[i]) > 1)
      return false;
  return std::all_of(f.values.begin(), f.values.end(), [&](const StepValue& v) {
    return !v.is_kept || v.kind == Kind::kEntry || IsFull(f, v);
  });
}

}  // namespace

bool MakeStages(const Node& node, RecurrentForm* form) {
  if (!Adder(form).Run(node)) return false;
  PlaceOps(form);
  return PlaceSums(form) && Settle(form);
}

}  // namespace keel_cpu
