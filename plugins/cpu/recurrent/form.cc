// form.cc: see form.h.
#include "plugins/cpu/recurrent/form.h"

#include <algorithm>
#include <string_view>

#include "plugins/cpu/body_reader.h"
#include "plugins/cpu/map/instructions.h"

namespace keel_cpu {
namespace {

using Kind = StepValue::Kind;

Dims WithoutOnes(const Dims& dims) {
  const auto first = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d != 1; });
  return Dims(first, dims.end());
}

// Reads the operands of the scan or call and the nodes of its body.
class Reader final : BodyReader {
 public:
  Reader(const Node& scan, RecurrentForm* form) : BodyReader(scan.host), scan_(scan), f_(*form) {}

  bool Read() {
    std::optional<keel_body> graph = BodyOfCall(scan_);
    f_.is_scan = !graph;
    if (f_.is_scan) {
      graph = GraphOf(scan_, 0);
      if (!graph || scan_.Flag("counted")) return false;
      f_.carry = static_cast<uint32_t>(scan_.Int("carry"));
      f_.invariants = static_cast<uint32_t>(scan_.Int("invariants"));
    }
    if ((f_.carry > 0) != f_.is_scan) return false;
    Numbers operands(scan_.InCount());
    for (uint32_t i = 0; i < operands.size(); i++) operands[i] = AddOperand(i);
    std::optional<Numbers> results = ReadNodes(*graph, std::move(operands));
    if (!results) return false;
    f_.results = std::move(*results);
    for (uint32_t i = 0; i < f_.carry; i++) Join(i, f_.results[i]);
    return true;
  }

 private:
  uint32_t Add(StepValue value) {
    const auto number = static_cast<uint32_t>(f_.values.size());
    if (value.rows == KEEL_NO_VALUE) value.rows = number;
    f_.values.push_back(std::move(value));
    return number;
  }
  void Join(uint32_t a, uint32_t b) {
    const uint32_t from = f_.values[a].rows, to = f_.values[b].rows;
    for (StepValue& v : f_.values)
      if (v.rows == from) v.rows = to;
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
  Number AddConstant(const keel_tensor& t) override {
    StepValue v = {Kind::kConstant, TypeOf(t), DimsOf(t)};
    v.data = static_cast<const char*>(keel_ptr(&t));
    return Add(std::move(v));
  }
  Number AddOp(const Node& node, const keel_body_node& n, const Numbers& in) override {
    const std::string_view op = scan_.host->node_op(n.node);
    if (op == "reshape") return Reshape(node, f_.values[in[0]]);
    if (op == "slice") return Slice(node, in[0]);
    if (op == "matmul") return Multiply(node, in);
    return Compute(node, n, in);
  }

  // Parts of products and weights have their own dims; other values may lose or get ones in front only.
  Number Reshape(const Node& node, StepValue v) {
    const Dims to = DimsOf(node.Out(0));
    if (v.kind == Kind::kComputed || (v.data == nullptr && WithoutOnes(to) != WithoutOnes(v.dims)))
      return std::nullopt;
    v.dims = to, v.uses = 0;
    return Add(std::move(v));
  }
  // A part along the first dim, or of a product's columns, or all of a value.
  Number Slice(const Node& node, uint32_t whole) {
    StepValue v = f_.values[whole];
    const Dims start = node.List("start"), step = node.List("step"), to = DimsOf(node.Out(0));
    if (std::any_of(step.begin(), step.end(), [](int64_t s) { return s != 1; })) return std::nullopt;
    int moved = -1;
    for (size_t d = 0; d < to.size(); d++)
      if (to[d] != v.dims[d] || start[d] != 0) {
        if (moved >= 0) return std::nullopt;
        moved = static_cast<int>(d);
      }
    const bool known = std::all_of(to.begin(), to.end(), [](int64_t d) { return d >= 0; });
    if (moved < 0 && known) return whole;
    v.rows = KEEL_NO_VALUE;  // a symbol may be cut to another
    const bool is_part = v.kind == Kind::kPart;
    const int last = static_cast<int>(to.size()) - 1;
    if (is_part && moved == last) {
      v.column += start[static_cast<size_t>(last)];
    } else if (is_part && moved == 0 && last == 2) {
      v.first += start[0];
    } else if (moved == 0 && (v.kind == Kind::kInvariant || v.kind == Kind::kConstant)) {
      v.first += start[0] * Product(to.data() + 1, last);
    } else if (moved >= 0 || v.kind == Kind::kComputed) {
      return std::nullopt;
    }
    v.dims = to, v.uses = 0;
    return Add(std::move(v));
  }
  Number Multiply(const Node& node, const Numbers& in) {
    StepValue &left = f_.values[in[0]], &right = f_.values[in[1]];
    const size_t rank = right.dims.size();
    const bool known = std::all_of(right.dims.begin(), right.dims.end(), [](int64_t d) { return d > 0; });
    if (left.dtype != KEEL_F32 || right.data == nullptr || !known || left.dims.size() != 2 ||
        (rank != 2 && rank != 3) || node.Flag("ta") ||
        (left.kind != Kind::kCarry && left.kind != Kind::kEntry && left.kind != Kind::kComputed))
      return std::nullopt;
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
    v.stage = p.stage, v.rows = left.rows;
    f_.products.push_back(p);
    return Add(std::move(v));
  }
  Number Compute(const Node& node, const keel_body_node& n, const Numbers& in) {
    const std::optional<Instruction> found = FindInstruction(node, n);
    if (!found || found->step.failure != nullptr) return std::nullopt;
    StepValue v = {Kind::kComputed, TypeOf(node.Out(0)), DimsOf(node.Out(0))};
    v.op = static_cast<uint32_t>(f_.ops.size());
    for (uint32_t i : in) {
      StepValue& x = f_.values[i];
      if (x.kind == Kind::kPart && x.dims.size() != 2) return std::nullopt;
      v.stage = std::max(v.stage, x.stage);
      x.uses++;
    }
    const uint32_t stage = v.stage, out = Add(std::move(v));
    for (uint32_t i : in) {
      const Dims& dims = f_.values[i].dims;
      if (dims.size() > 1 && dims[dims.size() - 2] != 1) Join(i, out);
    }
    f_.ops.push_back({n.node, in, out, stage});
    return out;
  }

  const Node& scan_;
  RecurrentForm& f_;
};

// Without products with entries a launch takes 1.03 to 1.06 of the time of the body's launches. Two left
// operands distinguish a step from other calls.
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
  form->units = form->state[1], form->rows = form->values[form->results[0]].rows;
  return MakeStages(scan, form);
}

}  // namespace keel_cpu
