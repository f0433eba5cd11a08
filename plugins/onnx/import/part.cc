// part.cc: the option "cut": only the part of a model between named values is imported; the rest may contain
// operators that are not supported.
#include <algorithm>
#include <iterator>

#include "plugins/onnx/import/importer.h"

namespace onnx_import {
namespace {

bool contains(const std::vector<Text>& names, Text name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The model's description of a value; null: there is none.
const ValueInfo* described(const Graph& g, Text name) {
  for (const auto* list : {&g.inputs, &g.outputs, &g.values})
    for (const ValueInfo& info : *list)
      if (info.name == name) return &info;
  return nullptr;
}

std::vector<Text> read_by(const Node& node) {
  std::vector<Text> names = node.inputs;
  for (const auto& a : node.attributes)
    if (a.graph) free_names(*a.graph, {}, names);
  return names;
}

bool is_made(const Graph& g, Text name) {
  const auto named = [&](const auto& x) { return x.name == name; };
  const auto makes = [&](const Node& n) { return contains(n.outputs, name); };
  return std::any_of(g.nodes.begin(), g.nodes.end(), makes) ||
         std::any_of(g.inputs.begin(), g.inputs.end(), named) ||
         std::any_of(g.initializers.begin(), g.initializers.end(), named);
}

// The nodes that the last values need if the first ones are given.
struct Part {
  std::set<Text> needed;  // values
  std::vector<Node> nodes;
};
Part part_between(const Graph& g, const std::vector<Text>& first, const std::vector<Text>& last) {
  Part part = {{last.begin(), last.end()}, {}};
  for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node) {
    const auto makes = [&](Text name) { return part.needed.count(name) && !contains(first, name); };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), makes)) continue;
    const std::vector<Text> names = read_by(*node);
    part.needed.insert(names.begin(), names.end());
    part.nodes.push_back(*node);
  }
  std::reverse(part.nodes.begin(), part.nodes.end());
  return part;
}

}  // namespace

void Importer::cut_model() {
  for (const keel_kv& option : options_)
    if (Text(option.key) == "cut") cut_model(option.value);
}

// "a,b..y": from a and b, and the inputs that are needed besides, to y. No name: the model's own.
void Importer::cut_model(Text names) {
  Graph& g = model_.graph;
  const size_t dots = names.find("..");
  if (dots == Text::npos) refuse(KEEL_INVALID, cat("cut: got '", names, "'; expected FROM..TO"));
  const std::vector<Text> first = words_of(names.substr(0, dots)), given = words_of(names.substr(dots + 2));
  std::vector<Text> last = given;
  if (last.empty())
    for (const auto& output : g.outputs) last.push_back(output.name);
  Part part = part_between(g, first, last);
  for (Text name : given)
    if (!is_made(g, name)) refuse(KEEL_NOT_FOUND, cat("cut: no node makes '", name, "'"));
  std::vector<ValueInfo> inputs, outputs;
  for (Text name : first) {
    const ValueInfo* info = described(g, name);
    if (!part.needed.count(name))
      refuse(KEEL_NOT_FOUND, cat("cut: no node before the end reads '", name, "'"));
    if (!info)
      refuse(KEEL_NOT_FOUND,
             cat("cut: the model has no type of '", name, "'; onnx.shape_inference.infer_shapes adds types"));
    inputs.push_back(*info);
  }
  const auto is_first = [&](const auto& x) { return contains(first, x.name); };
  std::copy_if(g.inputs.begin(), g.inputs.end(), std::back_inserter(inputs),
               [&](const ValueInfo& x) { return part.needed.count(x.name) && !is_first(x); });
  for (Text name : last) {
    const ValueInfo* info = described(g, name);
    outputs.push_back(info ? *info : ValueInfo{});
    outputs.back().name = name;
  }
  std::erase_if(g.initializers, is_first);
  g.nodes = std::move(part.nodes), g.inputs = std::move(inputs), g.outputs = std::move(outputs);
}

}  // namespace onnx_import
