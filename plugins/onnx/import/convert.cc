// convert.cc: converts the nodes in order: functions are inlined, operators with graphs handled by
// control.cc, sizes folded, and all other nodes converted by their operator's rule.
//
// If a rule needs the value of a parameter, its results are marked as missing and the import continues, so
// that one message names every such parameter.
#include <algorithm>
#include <utility>

#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {
namespace {

constexpr size_t kMostNames = 1 << 20;  // limit of recorded names, in bytes

constexpr int kMaxDepth = 32;

ValueP found(const Scope& scope, Text name) {
  const ValueP* value = scope.find(name);
  return value ? *value : nullptr;
}

void refuse_lists(Call& call) {
  for (size_t i = 0; i < call.n_in(); i++)
    if (call.has(i)) expect_tensor(call, i);
}

// The results' indices are of the operand's table.
void hand_on_table(Call& call) {
  if (!call.has(0) || !call.value(0).table) return;
  for (auto& out : call.out)
    if (out) out->table = call.value(0).table;
}

// A long sequence counts as several nodes, so that many of them cannot exceed memory.
int64_t cost_of(const Call& call) {
  int64_t cost = 1;
  for (const ValueP& value : call.out)
    if (value && value->list) cost += static_cast<int64_t>(value->list->elements.size()) / 16;
  return cost;
}

}  // namespace

const ValueP* Scope::find(Text name) const {
  for (const Scope* s = this; s; s = s->parent)
    if (const auto found = s->values.find(name); found != s->values.end()) return &found->second;
  return nullptr;
}

std::string Scope::show(Text name) const {
  const auto found = shown.find(name);
  return found == shown.end() ? cat(prefix, name) : found->second;
}

AttributeMap Importer::attributes(const Node& node, const Scope& scope) const {
  AttributeMap map;
  for (const auto& a : node.attributes) {
    if (a.reference.empty()) {
      map[a.name] = &a;
    } else if (const auto given = scope.attributes.find(a.reference); given != scope.attributes.end()) {
      map[a.name] = given->second;
    }
  }
  return map;
}

std::vector<ValueP> Importer::operands(const Node& node, const Scope& scope) const {
  std::vector<ValueP> list;
  for (Text name : node.inputs) {
    const ValueP* value = name.empty() ? nullptr : scope.find(name);
    list.push_back(value ? *value : nullptr);
    if (!name.empty() && !value) {
      const Text shown = node.name.empty() ? node.outputs.at(0) : node.name;
      refuse(KEEL_INVALID,
             cat("node '", shown, "' (", node.op, ") reads '", name, "', which no earlier node produces"));
    }
  }
  return list;
}

void Importer::convert(const std::vector<Node>& nodes, Scope& scope) {
  if (scope.depth > kMaxDepth)
    refuse(KEEL_INVALID, cat("functions or branches nest deeper than ", kMaxDepth));
  scope.nodes = nodes;
  for (const auto& node : nodes) convert(node, scope);
}

void Importer::spend(int64_t nodes) {
  nodes_left_ -= nodes;
  if (nodes_left_ < 0)
    refuse(KEEL_OOM, "the model has more than a million nodes when its functions and loops are inlined");
}

void Importer::convert_control(const Control& control, Call& call, const Scope& scope) {
  if (!control.lists) refuse_lists(call);
  if (!control.strings) refuse_strings(call, {control.op.data(), 0, nullptr});
  (this->*control.convert)(call, scope);
}

void Importer::convert(const Node& node, Scope& scope) {
  if (std::all_of(node.outputs.begin(), node.outputs.end(), [](Text name) { return name.empty(); })) return;
  spend(1);
  Call call(*scope.edit, node, scope.opset, attributes(node, scope), operands(node, scope));
  for (Text output : node.outputs)
    if (call.name.empty() && !output.empty()) call.name = scope.show(output);
  bool missing = false;
  for (const auto& value : call.inputs()) missing = missing || (value && value->missing);
  if (missing)
    skip(call);
  else if (const Function* f = function(node))
    inline_function(*f, call, scope);
  else if (const Control* control = find_control(node.domain, node.op))
    convert_control(*control, call, scope);
  else if (!convert_rule(call))
    call.mark_missing();
  spend(cost_of(call) - 1);
  note_name(node, call, scope);
  for (size_t k = 0; k < node.outputs.size(); k++) {
    if (node.outputs[k].empty()) continue;
    if (!call.out[k]) call.unsupported(cat("result ", k, " ('", node.outputs[k], "') is not supported"));
    scope.values[node.outputs[k]] = call.out[k];
  }
}

// Records the model's name of a node, for searches; Keel names the node after its result.
void Importer::note_name(const Node& node, const Call& call, const Scope& scope) {
  const auto odd = [](unsigned char c) { return c < ' ' || c >= 0x7f; };  // not printable ASCII
  if (scope.depth > 0 || node.name.empty() || node.name == call.name) return;
  const std::string line = cat(node.name, "\t", call.name);
  if (std::count_if(line.begin(), line.end(), odd) > 1 || node_names_.size() + line.size() >= kMostNames)
    return;
  node_names_ += cat(line, "\n");
}

bool Importer::check_needs(Call& call, const Rule& rule) {
  Names needs;
  for (size_t i = 0; i < call.n_in() && i < 32; i++) {
    if (!(rule.values & bit(static_cast<int>(i))) || !call.has(i) || call.e.sizes(call.value(i))) continue;
    needs.insert(call.value(i).needs.begin(), call.value(i).needs.end());
  }
  needs_.insert(needs.begin(), needs.end());
  return needs.empty();
}

// A node after a missing one still reports its own needs.
void Importer::skip(Call& call) {
  const Rule* rule = find_rule(call.node.domain, call.node.op, call.opset);
  if (rule) check_needs(call, *rule);
  call.mark_missing();
}

// Passes the needs of unknown operands on to the results.
void Importer::pass_needs(Call& call) {
  Names needs;
  for (size_t i = 0; i < call.n_in(); i++) {
    if (!call.has(i) || call.e.sizes(call.value(i))) continue;
    if (call.value(i).needs.empty()) return;
    needs.insert(call.value(i).needs.begin(), call.value(i).needs.end());
  }
  for (auto& out : call.out)
    if (out) out->needs = needs;
}

// Folded results with clipped numbers are right as bounds, which are clamped anyway, but not as data: these
// come from nodes.
void Importer::add_data(Call& call, const Rule& rule) {
  const auto is_clipped = [](const ValueP& v) { return v && v->sizes && clipped(*v->sizes); };
  if (std::none_of(call.out.begin(), call.out.end(), is_clipped)) return;
  const std::vector<ValueP> folded = std::exchange(call.out, std::vector<ValueP>(call.out.size()));
  rule.convert(call);
  for (size_t k = 0; k < folded.size(); k++) {
    if (!call.out[k] || !folded[k]) continue;
    call.out[k] = std::make_shared<Value>(*call.out[k]);
    call.out[k]->sizes = folded[k]->sizes;
  }
}

bool Importer::convert_rule(Call& call) {
  const Rule* rule = find_rule(call.node.domain, call.node.op, call.opset);
  if (!rule || !rule->lists) refuse_lists(call);
  if (rule) refuse_strings(call, *rule);
  if (call.node.domain.empty() && fold(call)) {
    if (rule) add_data(call, *rule);
    return true;
  }
  if (!rule) call.unsupported("this operator is not supported");
  if (!check_needs(call, *rule)) return false;
  rule->convert(call);
  if (rule->moves && !rule->strings) hand_on_table(call);
  if (folds(call.node.op)) pass_needs(call);
  if (rule->moves && call.has(0) && never_negative(call, 0))
    for (auto& out : call.out)
      if (out) out->nonneg = true;
  return true;
}

void Importer::inline_function(const Function& f, Call& call, const Scope& scope) {
  Scope inner;
  inner.edit = scope.edit;
  inner.opset = opset_version(f.opsets);
  inner.depth = scope.depth + 1;
  inner.prefix = cat(call.name, "/");
  for (const auto& a : f.defaults) inner.attributes[a.name] = &a;
  for (Text name : f.attributes)
    if (const Attribute* a = call.attribute(name)) inner.attributes[name] = a;
  for (const auto& a : f.defaults)
    if (const Attribute* given = call.attribute(a.name)) inner.attributes[a.name] = given;
  for (size_t i = 0; i < f.inputs.size(); i++)
    inner.values[f.inputs[i]] = i < call.n_in() ? call.inputs()[i] : nullptr;
  for (size_t k = 0; k < f.outputs.size() && k < call.out.size(); k++)
    if (call.wants(k)) inner.shown[f.outputs[k]] = scope.show(call.node.outputs[k]);
  convert(f.nodes, inner);
  for (size_t k = 0; k < f.outputs.size() && k < call.out.size(); k++)
    call.out[k] = found(inner, f.outputs[k]);
}

}  // namespace onnx_import
