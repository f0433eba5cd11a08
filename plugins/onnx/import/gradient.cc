// gradient.cc: Gradient of ai.onnx.preview.training: the derivatives of a value of the same graph.
//
// The operands take the places of `xs` and `zs`, so the nodes between them and `y` are converted again, for
// these operands. Copies of the operands keep gradients from other paths between them.
#include "plugins/onnx/import/importer.h"

namespace onnx_import {
namespace {

void read_names(const Node& node, std::set<Text>& out) {
  std::vector<Text> captured;
  for (const auto& a : node.attributes)
    if (a.graph) free_names(*a.graph, {}, captured);
  out.insert(node.inputs.begin(), node.inputs.end());
  out.insert(captured.begin(), captured.end());
}

bool any_in(const std::vector<Text>& names, const std::set<Text>& set) {
  return std::any_of(names.begin(), names.end(), [&](Text n) { return !n.empty() && set.count(n); });
}

// The names that depend on `given`, without them.
std::set<Text> dependents(std::span<const Node> nodes, const std::set<Text>& given) {
  std::set<Text> known = given, out;
  for (const Node& node : nodes) {
    std::set<Text> reads;
    read_names(node, reads);
    if (!any_in({reads.begin(), reads.end()}, known)) continue;
    for (Text name : node.outputs)
      if (!given.count(name) && known.insert(name).second) out.insert(name);
  }
  return out;
}

// The nodes that compute y and depend on `given`, in order.
std::vector<const Node*> nodes_between(std::span<const Node> nodes, const std::set<Text>& given, Text y) {
  const std::set<Text> moving = dependents(nodes, given);
  std::set<Text> needed = {y};
  std::vector<const Node*> out;
  for (size_t k = nodes.size(); k-- > 0;) {
    std::set<Text> made;
    for (Text name : nodes[k].outputs)
      if (moving.count(name)) made.insert(name);
    if (!any_in({made.begin(), made.end()}, needed)) continue;
    read_names(nodes[k], needed);
    out.insert(out.begin(), &nodes[k]);
  }
  return out;
}

ValueP copy_of(Call& call, size_t i) {
  auto value = std::make_shared<Value>();
  value->name = call.value(i).name;
  value->id = call.e.op("identity", {call.in(i)});
  return value;
}

// The names in the order of the operands.
std::vector<Text> variables_of(const Call& call, size_t* n_xs) {
  std::vector<Text> names;
  for (Text list : {Text("xs"), Text("zs")}) {
    const Attribute* a = call.attribute(list);
    if (a) names.insert(names.end(), a->strings.begin(), a->strings.end());
    if (list == "xs") *n_xs = names.size();
  }
  if (!*n_xs) call.invalid("attribute xs names no value");
  if (call.n_in() != names.size())
    call.invalid(cat("it has ", call.n_in(), " operands; expected ", names.size(),
                     ", one for each value of xs and zs"));
  if (std::set<Text>(names.begin(), names.end()).size() != names.size())
    call.invalid("xs and zs name a value twice");
  return names;
}

}  // namespace

void Importer::convert_gradient(Call& call, const Scope& scope) {
  size_t n_xs = 0;
  const std::vector<Text> names = variables_of(call, &n_xs);
  const Attribute* target = call.attribute("y");
  if (!target || target->s.empty()) call.invalid("attribute y is missing");
  Scope inner = within(call, scope);
  inner.nodes = scope.nodes;  // for a Gradient between them
  for (size_t i = 0; i < names.size(); i++) inner.values[names[i]] = copy_of(call, i);
  const uint32_t variables = call.e.variables();
  const std::span<const Node> before(scope.nodes.data(),
                                     static_cast<size_t>(&call.node - scope.nodes.data()));
  for (const Node* node : nodes_between(before, {names.begin(), names.end()}, target->s))
    convert(*node, inner);
  if (call.e.variables() != variables) call.unsupported(cat("'", target->s, "' depends on random numbers"));
  const ValueP* y = inner.find(target->s);
  if (!y || !*y) call.invalid(cat("y is '", target->s, "', and no earlier node of its graph produces that"));
  if ((*y)->missing) return call.mark_missing();
  Ids xs;
  for (size_t i = 0; i < n_xs; i++) xs.push_back(inner.values[names[i]]->id);
  const Ids dxs = call.e.gradient(call.e.id(**y), xs);
  for (size_t k = 0; k < dxs.size(); k++) call.set(k, dxs[k]);
}

}  // namespace onnx_import
