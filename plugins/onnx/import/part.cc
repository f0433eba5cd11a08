// part.cc: the option "cut": only the part of a model between named values is imported; the rest may contain
// operators that are not supported.
#include <algorithm>
#include <iterator>
#include <optional>

#include "plugins/onnx/import/importer.h"

namespace onnx_import {
namespace {

bool contains(const std::vector<Text>& names, Text name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

ValueInfo described(const Tensor& t) {
  ValueInfo info{t.name, true, true, t.type, {}};
  for (int64_t size : t.dims) info.dims.push_back({true, size, {}});
  return info;
}

// The model's description of a value; none: it has none.
std::optional<ValueInfo> described(const Graph& g, Text name) {
  for (const auto* list : {&g.inputs, &g.outputs, &g.values})
    for (const ValueInfo& info : *list)
      if (info.name == name) return info;
  for (const Tensor& t : g.initializers)
    if (t.name == name) return described(t);
  return std::nullopt;
}

std::vector<Text> read_by(const Node& node) {
  std::vector<Text> names = node.inputs;
  for (const auto& a : node.attributes)
    if (a.graph) free_names(*a.graph, {}, names);
  return names;
}

std::set<Text> values_of(const Graph& g) {
  std::set<Text> names;
  for (const Node& node : g.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  for (const ValueInfo& input : g.inputs) names.insert(input.name);
  for (const Tensor& t : g.initializers) names.insert(t.name);
  names.erase("");
  return names;
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

// The names between commas. A name may have commas itself: the longest one that is a value is taken.
std::vector<Text> names_in(Text list, const std::set<Text>& values) {
  std::vector<Text> names;
  for (size_t at = 0; at <= list.size() && !list.empty();) {
    size_t end = std::min(list.find(',', at), list.size());
    for (size_t far = end; far < list.size();) {
      far = std::min(list.find(',', far + 1), list.size());
      if (values.count(list.substr(at, far - at))) end = far;
    }
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

struct Ends {
  std::vector<Text> first, last;
};

// FROM..TO. A name may have dots itself: split at the first dots with values on both sides, if there are any.
Ends ends_in(Text option, const std::set<Text>& values) {
  const auto known = [&](const std::vector<Text>& names) {
    return std::all_of(names.begin(), names.end(), [&](Text name) { return values.count(name); });
  };
  const size_t dots = option.find("..");
  if (dots == Text::npos) refuse(KEEL_INVALID, cat("cut: got '", option, "'; expected FROM..TO"));
  const auto at = [&](size_t k) {
    return Ends{names_in(option.substr(0, k), values), names_in(option.substr(k + 2), values)};
  };
  for (size_t k = dots; k != Text::npos; k = option.find("..", k + 1))
    if (Ends ends = at(k); known(ends.first) && known(ends.last)) return ends;
  return at(dots);
}

// Nodes have names of their own, which viewers show.
std::string results_of_node(const Graph& g, Text name) {
  for (const Node& node : g.nodes) {
    if (node.name != name) continue;
    std::string results;
    for (Text output : node.outputs) results += cat(results.empty() ? "'" : ", '", output, "'");
    return cat("; it is a node (", node.op, "), whose results are ", results);
  }
  return "; expected names of values (operands and results of nodes)";
}

void check_names(const Graph& g, const std::set<Text>& values, const std::vector<Text>& names) {
  std::set<Text> seen;
  for (Text name : names) {
    if (name.empty()) refuse(KEEL_INVALID, "cut: a name is empty; expected names separated by single commas");
    if (!values.count(name))
      refuse(KEEL_NOT_FOUND, cat("cut: no node makes '", name, "'", results_of_node(g, name)));
    if (!seen.insert(name).second) refuse(KEEL_INVALID, cat("cut: '", name, "' is named twice"));
  }
}

}  // namespace

void Importer::cut_model() {
  for (const keel_kv& option : options_)
    if (Text(option.key) == "cut") cut_model(option.value);
}

// "a,b..y": from a and b, and the inputs that are needed besides, to y. No name: the model's own.
void Importer::cut_model(Text names) {
  Graph& g = model_.graph;
  const std::set<Text> values = values_of(g);
  Ends ends = ends_in(names, values);
  const auto &first = ends.first, &last = ends.last;
  for (const auto* list : {&first, &last}) check_names(g, values, *list);
  if (last.empty())
    for (const auto& output : g.outputs) ends.last.push_back(output.name);
  Part part = part_between(g, first, last);
  std::vector<ValueInfo> inputs, outputs;
  for (Text name : first) {
    const std::optional<ValueInfo> info = described(g, name);
    if (!part.needed.count(name))
      refuse(KEEL_NOT_FOUND, cat("cut: no node before the end reads '", name, "'"));
    if (!info)
      refuse(KEEL_NOT_FOUND,
             cat("cut: the model has no type of '", name, "'; onnx.shape_inference.infer_shapes adds types"));
    inputs.push_back(*info);
  }
  const auto is_first = [&](const auto& x) { return contains(first, x.name); };
  for (Node& node : part.nodes)  // which makes another value that is needed, too
    for (Text& output : node.outputs)
      if (contains(first, output)) output = "";
  std::copy_if(g.inputs.begin(), g.inputs.end(), std::back_inserter(inputs),
               [&](const ValueInfo& x) { return part.needed.count(x.name) && !is_first(x); });
  for (Text name : last) {
    outputs.push_back(described(g, name).value_or(ValueInfo{}));
    outputs.back().name = name;
  }
  std::erase_if(g.initializers, is_first);
  g.nodes = std::move(part.nodes), g.inputs = std::move(inputs), g.outputs = std::move(outputs);
}

}  // namespace onnx_import
