// control.cc: the operators with graphs as attributes: If, Loop, Scan. A row of kControls names an operator,
// its attributes and its converter; bodies.cc makes the graphs, unroll.cc inlines them once per iteration.
#include <algorithm>

#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {

std::span<const Importer::Control> Importer::controls() {
  static constexpr Control kControls[] = {
      {"", "If", 1, "then_branch else_branch", &Importer::convert_if},
      {"", "Loop", 1, "body", &Importer::convert_loop, true, true},
      {"", "SequenceMap", 17, "body", &Importer::convert_sequence_map, true, true},
      {"", "Scan", 8,
       "body directions num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
       "scan_output_directions",
       &Importer::convert_scan, false, true},
      {"ai.onnx.preview", "FlexAttention", 1, "prob_mod scale score_mod softmax_precision",
       &Importer::convert_flex_attention},
      {"ai.onnx.preview.training", "Gradient", 1, "xs y zs", &Importer::convert_gradient},
  };
  return kControls;
}

const Importer::Control* Importer::find_control(Text domain, Text op) {
  for (const Control& control : controls())
    if (control.op == op && control.domain == domain) return &control;
  return nullptr;
}

namespace {

keel_value as_scalar(Call& call, size_t i) {
  return call.rank(i) == 0 ? call.in(i) : call.e.reshape(call.in(i), {});
}

Ids ids_of(Edit& e, const std::vector<ValueP>& values, size_t from = 0) {
  Ids list;
  for (size_t i = from; i < values.size(); i++)
    each_tensor(values[i], [&](const ValueP& tensor) { list.push_back(e.id(*tensor)); });
  return list;
}

void add_body_results(Edit& e, const Ids& ids) {
  for (size_t k = 0; k < ids.size(); k++) e.result(cat("y", k), ids[k]);
}

void append(Ids& to, const Ids& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

// ---- If

void Importer::convert_if(Call& call, const Scope& scope) {
  bool condition = false;
  expect_flag(call, 0);
  const size_t yes = graph_of(call, "then_branch").outputs.size(),
               no = graph_of(call, "else_branch").outputs.size();
  if (yes != no || yes < call.node.outputs.size())
    call.invalid(cat("its branches have ", yes, " and ", no, " outputs; expected ", call.node.outputs.size(),
                     ", one for each result"));
  if (!known_bool(call.e, call.value(0), &condition)) return branch_on_data(call, scope);
  const Graph& branch = graph_of(call, condition ? "then_branch" : "else_branch");
  call.out = inline_graph(branch, {}, call, scope);
  call.out.resize(call.node.outputs.size());
}

// A branch that does not fit its operands may never be taken: the value that decides is demanded (null).
std::unique_ptr<Importer::Body> Importer::branch(const Graph& g, Call& call, const Scope& scope,
                                                 const Captured& captured) {
  try {
    return body_of(g, call, scope, captured, {}, {});
  } catch (const Failure& f) {
    if ((f.rc != KEEL_INVALID && f.rc != KEEL_UNIMPLEMENTED) || !demand_values(call, {0})) throw;
    return nullptr;
  }
}

// Strings that both branches give are bytes of one width.
void Importer::align_strings(Body& a, Body& b) {
  for (size_t k = 0; k < std::min(a.results.size(), b.results.size()); k++) {
    if (!a.results[k]->table || !b.results[k]->table) continue;
    const keel_value one = bytes_of(a.edit, *a.results[k]), other = bytes_of(b.edit, *b.results[k]);
    const keel_dim width = a.edit.max(a.edit.dims(one).back(), b.edit.dims(other).back());
    a.results[k] = strings_value(a.edit, widened(a.edit, one, width));
    b.results[k] = strings_value(b.edit, widened(b.edit, other, width));
  }
}

void Importer::branch_on_data(Call& call, const Scope& scope) {
  const Graph &yes = graph_of(call, "then_branch"), &no = graph_of(call, "else_branch");
  Captured captured;
  if (!capture({&yes, &no}, scope, &captured)) return call.mark_missing();
  const auto then_body = branch(yes, call, scope, captured), else_body = branch(no, call, scope, captured);
  if (!then_body || !else_body || then_body->missing || else_body->missing) return call.mark_missing();
  align_strings(*then_body, *else_body);
  if (const std::string difference = differing(call, yes, *then_body, no, *else_body); !difference.empty()) {
    if (demand_values(call, {0})) return call.mark_missing();
    call.unsupported(
        cat("its condition depends on data or open sizes and ", difference,
            "; if sizes decide it, give them as numbers (import options dim.NAME, shape.INPUT)"));
  }
  for (Body* body : {then_body.get(), else_body.get()})
    add_body_results(body->edit, ids_of(body->edit, body->results));
  Ids in = {as_scalar(call, 0)};
  append(in, captured.ids(call.e));
  const size_t n = ids_of(then_body->edit, then_body->results).size();
  Ids out;
  if (n)
    out =
        call.e.ops("cond", in, Attrs().as("then", then_body->attribute()).as("else", else_body->attribute()),
                   static_cast<uint32_t>(n));
  auto next = out.begin();
  for (size_t k = 0; k < then_body->results.size(); k++)
    call.set(k, rebuilt(then_body->results[k], [&](const ValueP&) {
               auto value = std::make_shared<Value>();
               value->id = *next++;
               return value;
             }));
}

// ---- Loop

// Requests the values of parameters on which these operands depend; false: there are none.
bool Importer::demand_values(Call& call, std::initializer_list<size_t> operands) {
  Names needs;
  for (size_t i : operands)
    if (call.has(i) && !call.known(i)) needs.insert(call.value(i).needs.begin(), call.value(i).needs.end());
  needs_.insert(needs.begin(), needs.end());
  return !needs.empty();
}

// Whether the condition that the body returns is the one it got, or known to be true.
bool Importer::always_continues(const Graph& g, const Scope& scope) const {
  Text name = g.outputs.at(0).name;
  for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node) {
    if (node->outputs.empty() || node->outputs[0] != name) continue;
    if (node->op != "Identity" || node->inputs.empty()) break;
    name = node->inputs[0];
  }
  if (name == g.inputs.at(1).name) return true;
  Value constant;
  for (const auto& tensor : g.initializers)
    if (tensor.name == name) constant.tensor = &tensor;
  for (const auto& node : g.nodes)
    if (node.op == "Constant" && !node.outputs.empty() && node.outputs[0] == name)
      for (const auto& a : node.attributes) constant.tensor = a.tensor.get();
  const ValueP* outer = scope.find(name);
  if (!constant.tensor && (!outer || !*outer)) return false;
  const Sizes* s = scope.edit->sizes(constant.tensor ? constant : **outer);
  return s && s->v.size() == 1 && s->v[0] == 1;
}

void Importer::convert_loop(Call& call, const Scope& scope) {
  const Graph& g = graph_of(call, "body");
  if (call.n_in() < 2 || g.inputs.size() != call.n_in() || g.outputs.size() + 1 < g.inputs.size())
    call.invalid(
        cat("its body has ", g.inputs.size(), " inputs and ", g.outputs.size(), " outputs for ", call.n_in(),
            " operands; expected as many inputs, and outputs for the condition and each carried value"));
  expect_results(call, g.outputs.size() - 1);
  const bool counted = call.has(0), conditional = call.has(1);
  if (counted) expect_count(call, 0);
  if (conditional) expect_flag(call, 1);
  bool condition = true;
  const bool known = !conditional || known_bool(call.e, call.value(1), &condition);
  const bool stacks = g.outputs.size() + 1 > g.inputs.size();
  const bool endless = always_continues(g, scope);
  if (known && condition && endless && !counted)
    call.invalid("it has no trip count and its condition is always true, so it has no end");
  if (const std::string why = reason_to_unroll(call, g, scope); !why.empty()) return unroll(call, scope, why);
  if (known && !condition) return loop_by_count(call, scope, 0);
  if (known && endless) {
    if (const Sizes* trips = call.known(0); trips && trips->v.size() == 1)
      return loop_by_count(call, scope,
                           call.e.at_least(trips->v[0], 0) ? trips->v[0] : call.e.max(trips->v[0], 0));
  }
  if (stacks && endless && demand_values(call, {0, 1})) return call.mark_missing();
  if (stacks)
    call.unsupported(
        "the number of its iterations depends on data, and so the shape of a result that it stacks");
  loop_by_condition(call, scope);
}

namespace {

template <class B>
Ids scan_node(Edit& e, const Ids& in, const B& body, size_t carry, size_t invariants, size_t results) {
  return e.ops("scan", in,
               Attrs()
                   .as("body", body.attribute())
                   .i("carry", static_cast<int64_t>(carry))
                   .i("invariants", static_cast<int64_t>(invariants)),
               static_cast<uint32_t>(results));
}

}  // namespace

void Importer::loop_by_count(Call& call, const Scope& scope, keel_dim length) {
  const Graph& g = graph_of(call, "body");
  Captured captured;
  if (!capture({&g}, scope, &captured)) return call.mark_missing();
  auto truth = std::make_shared<Value>();
  truth->sizes = Sizes{KEEL_BOOL, {}, {1}};
  captured.constants.emplace_back(g.inputs[1].name, truth);
  const Carried carried = {call.n_in() - 2, 0, 1};
  std::vector<Parameter> first = carried_parameters(call, g, 2, call.n_in());
  std::string why;
  const auto body =
      loop_body(g, call, scope, captured, first, {{g.inputs[0].name, KEEL_I64, {}}}, carried, &why);
  if (!body) return unroll(call, scope, why);
  if (body->missing) return call.mark_missing();
  add_body_results(body->edit, ids_of(body->edit, body->results, 1));
  Ids in = carried_operands(call, 2, first, carried);
  const Ids captives = captured.ids(call.e);
  append(in, captives);
  in.push_back(call.e.iota(length, KEEL_I64));
  const Ids out = scan_node(call.e, in, *body, carried.n, captives.size(), body->results.size() - 1);
  for (size_t k = 0; k < out.size(); k++) set_result(call, k, out[k], *body, k + 1);
}

// Carries the iteration's number, the condition and the values; the last operand is the trip count, if any.
void Importer::loop_by_condition(Call& call, const Scope& scope) {
  const Graph& g = graph_of(call, "body");
  Edit& e = call.e;
  Captured captured;
  if (!capture({&g}, scope, &captured)) return call.mark_missing();
  const Carried carried = {call.n_in() - 2, 2, 1};
  std::vector<Parameter> first = {{g.inputs[0].name, KEEL_I64, {}}, {g.inputs[1].name, KEEL_BOOL, {}}};
  for (const auto& p : carried_parameters(call, g, 2, call.n_in())) first.push_back(p);
  const Text count = "the trip count";
  const bool counted = call.has(0);
  std::vector<Parameter> last;
  if (counted) last.push_back({count, KEEL_I64, {}});
  std::string why;
  const auto body = loop_body(g, call, scope, captured, first, last, carried, &why);
  if (!body) return unroll(call, scope, why);
  if (body->missing) return call.mark_missing();
  expect_condition(call, g, *body);
  Edit& b = body->edit;
  Ids results = {b.op("add", {body->params[0], b.scalar(KEEL_I64, 1)})};
  append(results, ids_of(b, body->results));
  if (!b.dims(results[1]).empty()) results[1] = b.reshape(results[1], {});
  add_body_results(b, results);

  Ids in = {e.scalar(KEEL_I64, 0), call.has(1) ? as_scalar(call, 1) : e.scalar(KEEL_BOOL, 1)};
  append(in, carried_operands(call, 2, first, carried));
  append(in, captured.ids(e));
  if (counted) in.push_back(e.cast(as_scalar(call, 0), KEEL_I64));
  keel_attr test = {KEEL_ATTR_GRAPH, 0, 0, 0, nullptr};
  Edit t = e.new_graph(&test.i);
  Ids p;
  for (size_t i = 0; i < in.size(); i++) p.push_back(t.param(cat("p", i), e.dtype(in[i]), e.dims(in[i])));
  t.result("y", counted ? t.op("logical_and", {p[1], t.op("less", {p[0], p.back()})}) : p[1]);
  const auto carry = static_cast<uint32_t>(call.n_in());
  const Ids out = e.ops(
      "while", in,
      Attrs().as("test", test).as("body", body->attribute()).i("carry", static_cast<int64_t>(carry)), carry);
  for (size_t k = 2; k < out.size(); k++) set_result(call, k - 2, out[k], *body, k - 1);
}

// ---- Scan

namespace {

// Moves dim `from` to `to`.
keel_value moved(Edit& e, keel_value v, int64_t from, int64_t to) {
  Ints perm = counting(0, static_cast<int64_t>(e.dims(v).size()));
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return from == to ? v : e.op("transpose", {v}, Attrs().ints("perm", perm));
}
keel_value turned(Edit& e, keel_value v, bool reverse) {
  return reverse ? e.op("reverse", {v}, Attrs().ints("axes", {0})) : v;
}

ValueP reshaped(Edit& e, Value& v, const Dims& dims) {
  auto value = std::make_shared<Value>();
  value->id = e.reshape(e.id(v), dims);
  value->table = v.table;
  value->rows_in_order = v.rows_in_order;
  return value;
}

Ints entries(const Call& call, const char* name, size_t n) {
  const Ints list = call.ints(name, Ints(n, 0));
  if (list.size() != n) call.invalid(cat(name, " has ", list.size(), " entries; expected ", n));
  return list;
}

}  // namespace

void Importer::convert_scan(Call& call, const Scope& scope) {
  if (call.opset < 9) return convert_scan_8(call, scope);
  const Graph& g = graph_of(call, "body");
  Edit& e = call.e;
  const int64_t n_scanned = call.required("num_scan_inputs");
  if (n_scanned < 1 || n_scanned > static_cast<int64_t>(call.n_in()) || g.inputs.size() != call.n_in() ||
      g.outputs.size() + static_cast<size_t>(n_scanned) < call.n_in())
    call.invalid(cat("num_scan_inputs is ", n_scanned, " and its body has ", g.inputs.size(), " inputs and ",
                     g.outputs.size(), " outputs for ", call.n_in(), " operands"));
  expect_results(call, g.outputs.size());
  const auto m = static_cast<size_t>(n_scanned), carry = call.n_in() - m, stacked = g.outputs.size() - carry;
  const Ints axes = entries(call, "scan_input_axes", m), ways = entries(call, "scan_input_directions", m),
             out_axes = entries(call, "scan_output_axes", stacked),
             out_ways = entries(call, "scan_output_directions", stacked);
  Captured captured;
  if (!capture({&g}, scope, &captured)) return call.mark_missing();
  Ids in, scanned;
  std::vector<Parameter> last;
  for (size_t k = 0; k < m; k++) {
    const size_t i = carry + k;
    const int64_t axis = call.axis(axes[k], call.rank(i));
    Parameter& each = last.emplace_back(parameter(call, g.inputs[i].name, i));
    scanned.push_back(
        turned(e, moved(e, each.strings ? bytes_of(e, call.value(i)) : call.in(i), axis, 0), ways[k] != 0));
    each.dims = e.dims(scanned.back());
    each.dims.erase(each.dims.begin());
  }
  expect_scannable(call, scanned, carry);
  const Carried carried = {carry, 0, 0};
  std::vector<Parameter> first = carried_parameters(call, g, 0, carry);
  std::string why;
  const auto body = loop_body(g, call, scope, captured, first, last, carried, &why);
  if (!body)
    call.unsupported(
        cat(why, "; expected one type in all iterations (open sizes become numbers with --dim and --shape)"));
  if (body->missing) return call.mark_missing();
  add_body_results(body->edit, ids_of(body->edit, body->results));
  append(in, carried_operands(call, 0, first, carried));
  const Ids captives = captured.ids(e);
  append(in, captives);
  append(in, scanned);
  const Ids out = scan_node(e, in, *body, carry, captives.size(), g.outputs.size());
  for (size_t k = 0; k < out.size(); k++) {
    if (k < carry) {
      set_result(call, k, out[k], *body, k);
      continue;
    }
    const auto rank = static_cast<int64_t>(e.dims(out[k]).size() - body->strings.count(k));
    set_result(call, k,
               moved(e, turned(e, out[k], out_ways[k - carry] != 0), 0, call.axis(out_axes[k - carry], rank)),
               *body, k);
  }
}

// Opset 8: operand 0 is the lengths, the others have the batch first.
void Importer::convert_scan_8(Call& call, const Scope& scope) {
  Edit& e = call.e;
  if (call.has(0)) call.unsupported("sequence_lens of opset 8");
  if (call.n_in() < 2) call.invalid("it has no operand to scan over");
  const keel_dim batch = call.dims(1).at(0);
  if (batch != 1) call.unsupported(cat("a batch of Scan of opset 8; expected 1"));
  std::vector<ValueP> inner;
  for (size_t i = 1; i < call.n_in(); i++) {
    Dims dims = call.dims(i);
    if (dims.empty()) call.invalid(cat("operand ", i, " has no dim for the batch"));
    dims.erase(dims.begin());
    inner.push_back(reshaped(e, call.value(i), dims));
  }
  Attribute ways;
  ways.type = kAttrInts,
  ways.ints = call.ints("directions", Ints(static_cast<size_t>(call.required("num_scan_inputs")), 0));
  AttributeMap attributes = {{"scan_input_directions", &ways}};
  for (Text name : {Text("body"), Text("num_scan_inputs")}) attributes[name] = call.attribute(name);
  Call newer(e, call.node, 9, attributes, inner);
  newer.name = call.name;
  convert_scan(newer, scope);
  for (size_t k = 0; k < newer.out.size(); k++) {
    if (!newer.out[k] || newer.out[k]->missing) return call.mark_missing();
    Dims dims = e.dims(*newer.out[k]);
    dims.insert(dims.begin(), 1);
    call.set(k, reshaped(e, *newer.out[k], dims));
  }
}

}  // namespace onnx_import
