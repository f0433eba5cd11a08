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
    if ((f_.carry > 0) != f_.is_scan || !ReadNodes(graph, given, &f_.results)) return false;
    for (uint32_t i = 0; i < f_.carry; i++) Join(i, f_.results[i]);
    return true;
  }

 private:
  uint32_t Add(StepValue value) {
    const auto number = static_cast<uint32_t>(f_.values.size());
    if (value.rows == kNoValue) value.rows = number;
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
    if (op == "slice") return Slice(node, in[0], &number_[n.out]);
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
    if (v.kind == Kind::kComputed || (v.data == nullptr && WithoutOnes(to) != WithoutOnes(v.dims)))
      return false;
    v.dims = to, v.uses = 0;
    *number = Add(std::move(v));
    return true;
  }
  // A part along the first dim, or of a product's columns, or all of a value.
  bool Slice(const Node& node, uint32_t whole, uint32_t* number) {
    StepValue v = f_.values[whole];
    const Dims start = node.List("start"), step = node.List("step"), to = DimsOf(node.Out(0));
    if (std::any_of(step.begin(), step.end(), [](int64_t s) { return s != 1; })) return false;
    int moved = -1;
    for (size_t d = 0; d < to.size(); d++)
      if (to[d] != v.dims[d] || start[d] != 0) {
        if (moved >= 0) return false;
        moved = static_cast<int>(d);
      }
    const bool known = std::all_of(to.begin(), to.end(), [](int64_t d) { return d >= 0; });
    if (moved < 0 && known) return *number = whole, true;
    v.rows = kNoValue;  // a symbol may be cut to another
    const bool is_part = v.kind == Kind::kPart;
    const int last = static_cast<int>(to.size()) - 1;
    if (is_part && moved == last) {
      v.column += start[static_cast<size_t>(last)];
    } else if (is_part && moved == 0 && last == 2) {
      v.first += start[0];
    } else if (moved == 0 && (v.kind == Kind::kInvariant || v.kind == Kind::kConstant)) {
      v.first += start[0] * Product(to.data() + 1, last);
    } else if (moved >= 0 || v.kind == Kind::kComputed) {
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
    v.stage = p.stage, v.rows = left.rows;
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
    for (uint32_t i : in) {
      const Dims& dims = f_.values[i].dims;
      if (dims.size() > 1 && dims[dims.size() - 2] != 1) Join(i, *number);
    }
    f_.ops.push_back({n.node, in, *number, f_.values[*number].stage});
    return true;
  }

  const Node& scan_;
  RecurrentForm& f_;
  std::vector<uint32_t> number_;  // by value of the graph being read
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
