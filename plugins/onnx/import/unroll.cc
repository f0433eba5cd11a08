// unroll.cc: bodies that are inlined once per iteration: loops that carry sequences or whose sizes depend on
// the iteration, and SequenceMap. The number of an iteration is a known size in its body.
#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {
namespace {

constexpr int64_t kMostSteps = 100000;  // limit of the search, as functions may call each other

bool reads(const Node& node, const std::set<Text>& names) {
  for (Text name : node.inputs)
    if (names.count(name)) return true;
  return false;
}

// Whether an operand whose value the rule needs has one of these names.
bool needs_one(const Rule& rule, const Node& node, const std::set<Text>& names) {
  for (size_t i = 0; i < node.inputs.size() && i < 32; i++)
    if ((rule.values & bit(static_cast<int>(i))) && names.count(node.inputs[i])) return true;
  return false;
}

// The operands with these names, as the inner names of the same places.
template <class Inner>
std::set<Text> passed(const Node& node, const std::set<Text>& names, const std::vector<Inner>& inner) {
  std::set<Text> list;
  for (size_t i = 0; i < node.inputs.size() && i < inner.size(); i++) {
    if (!names.count(node.inputs[i])) continue;
    if constexpr (std::is_same_v<Inner, ValueInfo>)
      list.insert(inner[i].name);
    else
      list.insert(inner[i]);
  }
  return list;
}

bool moves_sizes(Text op) { return op == "Identity" || (folds(op) && op != "Shape" && op != "Size"); }

}  // namespace

// Whether sizes that the nodes need follow from the values of these names, through operators on sizes.
bool Importer::sizes_follow(const std::vector<Node>& nodes, int opset, std::set<Text> names,
                            int64_t* steps) const {
  for (const auto& node : nodes) {
    if (--*steps < 0 || names.empty()) return false;
    for (const auto& a : node.attributes) {
      if (!a.graph) continue;
      std::set<Text> inner = names;
      if (node.op != "If") inner.merge(passed(node, names, a.graph->inputs));
      if (sizes_follow(a.graph->nodes, opset, inner, steps)) return true;
    }
    if (!reads(node, names)) continue;
    if (const Function* f = function(node)) {
      if (sizes_follow(f->nodes, opset_version(f->opsets), passed(node, names, f->inputs), steps))
        return true;
    } else if (const Rule* rule = find_rule(node.domain, node.op, opset)) {
      if (needs_one(*rule, node, names)) return true;
      if (!node.domain.empty() || !moves_sizes(node.op)) continue;
    }
    names.insert(node.outputs.begin(), node.outputs.end());
  }
  return false;
}

// "": the loop can run as a node.
std::string Importer::reason_to_unroll(Call& call, const Graph& g, const Scope& scope) const {
  std::set<Text> names = {g.inputs[0].name};
  for (size_t i = 2; i < call.n_in(); i++) {
    const Value& v = call.value(i);
    if (v.list || v.absent) return cat("operand ", i, " ('", v.name, "') is ", form_of(v));
    if (call.known(i)) names.insert(g.inputs[i].name);
  }
  int64_t steps = kMostSteps;
  return sizes_follow(g.nodes, scope.opset, names, &steps) ? "a size in its body depends on the iteration"
                                                           : "";
}

namespace {

// Of a stacked result without entries: its type is that which the model declares.
ValueP nothing_stacked(Call& call, const ValueInfo& declared) {
  auto value = std::make_shared<Value>();
  Ints dims = {0};
  bool known = declared.is_tensor && declared.has_shape && !declared.is_sequence && !declared.is_optional;
  for (const Dim& d : declared.dims) {
    known = known && d.known && d.value >= 0;
    dims.push_back(d.value);
  }
  if (!known)
    call.unsupported(
        cat("it has no iterations, and the body's result '", declared.name, "' has no known shape"));
  if (declared.type == kString) return words_value({}, dims, call.title());
  value->data = store(KEEL_I64, dims, {});
  value->data->dtype = dtype_of(declared.type, call.title());
  return value;
}

void set_stacked(Call& call, const Graph& g, size_t carried, const std::vector<std::vector<ValueP>>& stacks) {
  for (size_t k = 0; k < stacks.size() && carried + k < call.out.size(); k++) {
    const ValueInfo& declared = g.outputs[1 + carried + k];
    bool missing = false;
    for (const ValueP& part : stacks[k]) {
      missing = missing || part->missing;
      if (part->list || part->absent)
        call.unsupported(
            cat("its body stacks '", declared.name, "', ", form_of(*part), "; expected a tensor"));
    }
    ValueP all = std::make_shared<Value>();
    all->missing = missing;
    if (!missing) expect_alike(call, declared.name, stacks[k]);
    if (!missing) all = stacks[k].empty() ? nothing_stacked(call, declared) : stacked(call, stacks[k], 0);
    call.set(carried + k, std::move(all));
  }
}

}  // namespace

// A trip count or condition that is not known ends the import; parameters on which it depends are named.
bool Importer::demand_known(Call& call, Value& v, const std::string& what, const std::string& why) {
  const Sizes* s = edit_.sizes(v);
  if (s && s->v.size() == 1 && !KEEL_DIM_IS_HANDLE(s->v[0])) return true;
  needs_.insert(v.needs.begin(), v.needs.end());
  if (!v.needs.empty()) return false;
  call.unsupported(cat(why, ", so the loop is unrolled, and ", what, " must be known while importing",
                       s ? "; give its dims numbers with --dim or --shape" : ", but depends on data"));
}

void Importer::unroll(Call& call, const Scope& scope, const std::string& why) {
  const Graph& g = graph_of(call, "body");
  const size_t carried = call.n_in() - 2;
  bool goes_on = true;
  if (call.has(0) && !demand_known(call, call.value(0), "its trip count", why)) return call.mark_missing();
  if (call.has(1) && !demand_known(call, call.value(1), "its condition", why)) return call.mark_missing();
  if (call.has(1)) known_bool(call.e, call.value(1), &goes_on);
  const int64_t trips = call.has(0) ? call.known(0)->v[0] : INT64_MAX;
  std::vector<ValueP> values(call.inputs().begin() + 2, call.inputs().end());
  std::vector<std::vector<ValueP>> stacks(g.outputs.size() - 1 - carried);
  for (int64_t k = 0; goes_on && k < trips; k++) {
    spend(1);
    std::vector<ValueP> in = {sizes_value({KEEL_I64, {}, {k}}), sizes_value({KEEL_BOOL, {}, {1}})};
    in.insert(in.end(), values.begin(), values.end());
    const std::vector<ValueP> out = inline_graph(g, in, call, scope, cat(k, "/"));
    if (out[0]->missing) return call.mark_missing();
    const std::string what = cat("the condition after iteration ", k);
    if (k + 1 < trips && !demand_known(call, *out[0], what, why)) return call.mark_missing();
    if (k + 1 < trips) known_bool(call.e, *out[0], &goes_on);
    for (size_t i = 0; i < carried; i++) values[i] = out[1 + i];
    for (size_t i = 0; i < stacks.size(); i++) stacks[i].push_back(out[1 + carried + i]);
  }
  for (size_t i = 0; i < carried; i++) call.set(i, values[i]);
  set_stacked(call, g, carried, stacks);
}

// ---- SequenceMap

namespace {

// The common length of the sequences among the operands.
size_t mapped_length(Call& call) {
  const size_t n = list_of(call, 0).elements.size();
  for (size_t i = 1; i < call.n_in(); i++) {
    const Value& v = call.value(i);
    if (v.list && v.list->elements.size() != n)
      call.invalid(cat("operand ", i, " is ", form_of(v), ", but operand 0 is a sequence of ", n));
    if (v.absent) expect_tensor(call, i);
  }
  return n;
}

}  // namespace

void Importer::convert_sequence_map(Call& call, const Scope& scope) {
  const Graph& g = graph_of(call, "body");
  const size_t n = mapped_length(call);
  if (g.outputs.size() < call.out.size())
    call.invalid(cat("its body has ", g.outputs.size(), " outputs for ", call.out.size(), " results"));
  std::vector<List> lists(call.out.size());
  for (size_t k = 0; k < n; k++) {
    spend(1);
    std::vector<ValueP> in;
    for (const ValueP& v : call.inputs()) in.push_back(v->list ? v->list->elements[k] : v);
    const std::vector<ValueP> out = inline_graph(g, in, call, scope, cat(k, "/"));
    for (size_t i = 0; i < lists.size(); i++) {
      if (out[i]->missing) return call.mark_missing();
      if (out[i]->list || out[i]->absent)
        call.unsupported(cat("result ", i, " of its body is ", form_of(*out[i]), "; expected a tensor"));
      lists[i].elements.push_back(out[i]);
      lists[i].dtype = out[i]->table ? kStrings : call.e.dtype(*out[i]);
    }
  }
  for (size_t i = 0; i < lists.size(); i++) {
    if (n == 0 && g.outputs[i].is_tensor) lists[i].dtype = elements_dtype(g.outputs[i].type, call.title());
    call.set(i, list_value(std::move(lists[i].elements), lists[i].dtype));
  }
}

}  // namespace onnx_import
