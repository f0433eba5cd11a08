// form.cc: see form.h.
#include "plugins/cpu/recurrent/form.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "plugins/cpu/map/instructions.h"

namespace keel_cpu {
namespace {

constexpr uint32_t kNoValue = KEEL_NO_VALUE;
using Kind = StepValue::Kind;
constexpr int64_t kFull = 32;  // units of which all panels are full, in every class

Dims WithoutOnes(const Dims& dims) {
  const auto first = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d != 1; });
  return Dims(first, dims.end());
}

// Reads the nodes of the body in order, calls included.
class Reader {
 public:
  Reader(const Node& scan, RecurrentForm* form) : scan_(scan), f_(*form) {}

  bool Read() {
    keel_body graph = {sizeof(keel_body), 0, 0, 0, nullptr, nullptr};
    f_.is_scan = scan_.host->node_body(scan_.node, &graph) != KEEL_OK;
    if (f_.is_scan) {
      if (scan_.host->node_graph(scan_.node, 0, &graph) != KEEL_OK || scan_.Flag("counted")) return false;
      f_.carry = static_cast<uint32_t>(scan_.Int("carry"));
      f_.invariants = static_cast<uint32_t>(scan_.Int("invariants"));
    }
    std::vector<uint32_t> given(scan_.InCount());
    for (uint32_t i = 0; i < given.size(); i++) given[i] = AddOperand(i);
    return (f_.carry > 0) == f_.is_scan && ReadNodes(graph, given, &f_.results);
  }

 private:
  uint32_t Add(StepValue value) {
    f_.values.push_back(std::move(value));
    return static_cast<uint32_t>(f_.values.size() - 1);
  }
  uint32_t AddOperand(uint32_t i) {
    const keel_tensor t = scan_.In(i);
    const bool carried = i < f_.carry, entry = f_.is_scan ? i >= f_.carry + f_.invariants : t.data == nullptr;
    StepValue v = {carried ? Kind::kCarry : entry ? Kind::kEntry : Kind::kInvariant, TypeOf(t), DimsOf(t)};
    if (entry && f_.is_scan) v.dims.erase(v.dims.begin());
    v.number = i;
    if (!carried && !entry && t.data != nullptr) v.data = static_cast<const char*>(keel_ptr(&t));
    return Add(std::move(v));
  }

  bool ReadNodes(const keel_body& graph, const std::vector<uint32_t>& given, std::vector<uint32_t>* results) {
    std::vector<uint32_t> outer = given;
    outer.resize(graph.n_values, kNoValue);
    std::swap(outer, number_);
    bool ok = true;
    for (uint32_t k = 0; ok && k < graph.n_nodes; k++) ok = ReadNode(graph.nodes[k]);
    for (uint32_t k = 0; ok && k < graph.n_results; k++) results->push_back(number_[graph.results[k]]);
    std::swap(outer, number_);
    return ok && std::find(results->begin(), results->end(), kNoValue) == results->end();
  }
  bool ReadNode(const keel_body_node& n) {
    const Node node{scan_.host, n.node};
    std::vector<uint32_t> in;
    for (uint32_t k = 0; k < n.n_in; k++) {
      if (n.in[k] == kNoValue) return false;
      uint32_t& number = number_[n.in[k]];
      if (number == kNoValue && !AddConstant(node.In(k), &number)) return false;
      in.push_back(number);
    }
    const std::string_view op = scan_.host->node_op(n.node);
    if (op == "call") return ReadCall(n, in);
    if (n.n_out != 1) return false;
    if (op == "identity" || op == "stop_gradient") return number_[n.out] = in[0], true;
    if (op == "reshape") return Reshape(node, f_.values[in[0]], &number_[n.out]);
    if (op == "slice") return Slice(node, f_.values[in[0]], &number_[n.out]);
    if (op == "matmul") return Multiply(node, in, &number_[n.out]);
    return Compute(node, n, in, &number_[n.out]);
  }
  bool AddConstant(const keel_tensor& t, uint32_t* number) {
    if (t.data == nullptr) return false;
    StepValue v = {Kind::kConstant, TypeOf(t), DimsOf(t)};
    v.data = static_cast<const char*>(keel_ptr(&t));
    *number = Add(std::move(v));
    return true;
  }
  bool ReadCall(const keel_body_node& n, const std::vector<uint32_t>& in) {
    keel_body graph = {sizeof(keel_body), 0, 0, 0, nullptr, nullptr};
    std::vector<uint32_t> results;
    if (scan_.host->node_body(n.node, &graph) != KEEL_OK || graph.n_results != n.n_out ||
        !ReadNodes(graph, in, &results))
      return false;
    std::copy(results.begin(), results.end(), number_.begin() + n.out);
    return true;
  }

  // Parts of products and weights have their own dims; other values may lose or get ones in front only.
  bool Reshape(const Node& node, StepValue v, uint32_t* number) {
    const Dims to = DimsOf(node.Out(0));
    if (v.kind == Kind::kComputed || WithoutOnes(to) != WithoutOnes(v.dims)) {
      if (v.data == nullptr) return false;
    }
    if (v.kind == Kind::kComputed) return false;
    v.dims = to, v.uses = 0;
    *number = Add(std::move(v));
    return true;
  }
  // A part along the first dim, or of a product's columns.
  bool Slice(const Node& node, StepValue v, uint32_t* number) {
    const Dims start = node.List("start"), step = node.List("step"), to = DimsOf(node.Out(0));
    if (std::any_of(step.begin(), step.end(), [](int64_t s) { return s != 1; })) return false;
    int moved = -1;
    for (size_t d = 0; d < to.size(); d++)
      if (to[d] != v.dims[d] || start[d] != 0) {
        if (moved >= 0) return false;
        moved = static_cast<int>(d);
      }
    const bool is_part = v.kind == Kind::kPart;
    const int last = static_cast<int>(to.size()) - 1;
    if (is_part && moved == last) {
      v.column += start[static_cast<size_t>(last)];
    } else if (is_part && moved == 0 && last == 2) {
      v.first += start[0];
    } else if (moved == 0 && (v.kind == Kind::kInvariant || v.kind == Kind::kConstant)) {
      v.first += start[0] * Product(to.data() + 1, last);
    } else if (moved >= 0) {
      return false;
    }
    v.dims = to, v.uses = 0;
    *number = Add(std::move(v));
    return true;
  }
  bool Multiply(const Node& node, const std::vector<uint32_t>& in, uint32_t* number) {
    StepValue &left = f_.values[in[0]], &right = f_.values[in[1]];
    const size_t rank = right.dims.size();
    const bool known = std::all_of(right.dims.begin(), right.dims.end(), [](int64_t d) { return d > 0; });
    if (left.dtype != KEEL_F32 || right.data == nullptr || !known || left.dims.size() != 2 ||
        (rank != 2 && rank != 3) || node.Flag("ta") ||
        (left.kind != Kind::kCarry && left.kind != Kind::kEntry && left.kind != Kind::kComputed))
      return false;
    const bool tb = node.Flag("tb");
    const int64_t a = right.dims[rank - 2], b = right.dims[rank - 1];
    const StepProduct p = {.left = in[0],
                           .stage = left.kind == Kind::kComputed ? left.stage + 1 : 0,
                           .weights = reinterpret_cast<const float*>(right.data) + right.first,
                           .depth = tb ? b : a,
                           .matrix = a * b,
                           .row = tb ? 1 : b,
                           .column = tb ? b : 1};
    left.uses++, left.is_kept = true;
    StepValue v = {Kind::kPart, KEEL_F32, DimsOf(node.Out(0))};
    v.number = static_cast<uint32_t>(f_.products.size());
    v.stage = p.stage;
    f_.products.push_back(p);
    *number = Add(std::move(v));
    return true;
  }
  bool Compute(const Node& node, const keel_body_node& n, const std::vector<uint32_t>& in, uint32_t* number) {
    const std::optional<Instruction> found = FindInstruction(node, n);
    if (!found || found->step.failure != nullptr) return false;
    StepValue v = {Kind::kComputed, TypeOf(node.Out(0)), DimsOf(node.Out(0))};
    v.op = static_cast<uint32_t>(f_.ops.size());
    for (uint32_t i : in) {
      StepValue& x = f_.values[i];
      if (x.kind == Kind::kPart && x.dims.size() != 2) return false;
      v.stage = std::max(v.stage, x.stage);
      x.uses++;
    }
    *number = Add(std::move(v));
    f_.ops.push_back({n.node, in, *number, f_.values[*number].stage});
    return true;
  }

  const Node& scan_;
  RecurrentForm& f_;
  std::vector<uint32_t> number_;  // by value of the graph being read
};

// Moves additions of products into sums.
class Adder {
 public:
  explicit Adder(RecurrentForm* form) : f_(*form), user_(f_.values.size(), kNoValue) {
    for (uint32_t k = 0; k < f_.ops.size(); k++)
      for (uint32_t v : f_.ops[k].in) user_[v] = k;
  }
  bool Run(const Node& scan) {
    is_gone_.assign(f_.ops.size(), false);
    for (uint32_t v = 0; v < user_.size(); v++)
      if (f_.values[v].kind == Kind::kPart && user_[v] != kNoValue && !is_added_[v] && !MakeSum(v, scan))
        return false;
    std::vector<StepOp> left;
    for (size_t k = 0; k < f_.ops.size(); k++)
      if (!is_gone_[k]) left.push_back(std::move(f_.ops[k]));
    f_.ops = std::move(left);
    return true;
  }

 private:
  bool IsAdd(uint32_t op, const Node& scan) const {
    return op != kNoValue && std::string_view(scan.host->node_op(f_.ops[op].node)) == "add";
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
    if (!same || x.dims.empty() || x.dims.back() != f_.units || x.dtype != KEEL_F32 || f_.units % kFull != 0)
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

bool IsOfStep(const RecurrentForm& f, const StepValue& v) {
  const size_t rank = v.dims.size();
  return rank <= 2 && (rank == 0 || v.dims[rank - 1] == 1 || v.dims[rank - 1] == f.units);
}

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
  const auto is_full = [&](const StepValue& v) { return v.dims.size() == 2 && v.dims[1] == f.units; };
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
    if (!is_full(f.values[i]) || std::count(f.results.begin(), f.results.begin() + f.carry, f.results[i]) > 1)
      return false;
  return std::all_of(f.values.begin(), f.values.end(),
                     [&](const StepValue& v) { return !v.is_kept || v.kind == Kind::kEntry || is_full(v); });
}

// Else the products with entries were made before: read from there, they cost what the launches of the body
// do. A step multiplies two values.
bool MultipliesEntries(const RecurrentForm& f) {
  const auto any = [&](const auto& is) { return std::any_of(f.products.begin(), f.products.end(), is); };
  return any([&](const StepProduct& p) { return f.values[p.left].kind == Kind::kEntry; }) &&
         any([&](const StepProduct& p) { return p.left != f.products[0].left; });
}

}  // namespace

bool ReadRecurrent(const Node& scan, RecurrentForm* form) {
  if (!Reader(scan, form).Read() || !MultipliesEntries(*form)) return false;
  for (uint32_t v : form->results) form->values[v].uses++;
  form->state = form->values[form->results[0]].dims;
  if (form->state.size() != 2 || form->state[1] <= 0) return false;
  form->units = form->state[1];
  if (!Adder(form).Run(scan)) return false;
  PlaceOps(form);
  return PlaceSums(form) && Settle(form);
}

}  // namespace keel_cpu
