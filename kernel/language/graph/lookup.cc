// lookup.cc: names of values and nodes of a graph, and lookup by name.

#include <algorithm>

#include "kernel/base/edit_distance.h"
#include "kernel/language/graph/element.h"
#include "kernel/language/graph/graph.h"
#include "kernel/language/graph/names.h"

namespace keel {
namespace {

std::string CloseNames(const Graph& g, std::string_view name) {
  std::vector<std::string> close;  // distance, name
  size_t limit = std::min<size_t>(name.size() / 2 + 1, 4), looked = 0;
  auto look = [&](const std::string& known) {
    if (known.empty() || ++looked > 10000) return;
    if (size_t d = EditDistance(known, name, limit); d < limit) close.push_back(absl::StrCat(d, known));
  };
  for (const Value& v : g.values) look(v.name);
  for (const std::string& r : g.result_names) look(r);
  std::sort(close.begin(), close.end());
  close.erase(std::unique(close.begin(), close.end()), close.end());
  std::string out;
  for (size_t i = 0; i < close.size() && i < 3; i++)
    absl::StrAppend(&out, i == 0 ? "; close names: '" : "', '", close[i].substr(1));
  return out.empty() ? out : out + "'";
}

// By its own name, that of a graph result, or "v12" and "v12_1".
std::optional<ValueId> FindNamed(const Graph& g, std::string_view name) {
  if (auto it = g.by_name.find(name); it != g.by_name.end()) return it->second;
  if (!name.empty())
    for (size_t i = 0; i < g.results.size(); i++)
      if (g.result_names[i] == name) return g.results[i];
  auto number = SplitResultName(name);
  if (!number || number->first >= g.nodes.size()) return std::nullopt;
  const std::vector<ValueId>& out = g.nodes[number->first].out;
  if (number->second >= out.size() || !g.values[out[number->second]].name.empty()) return std::nullopt;
  return out[number->second];
}

// "split:1": result 1 of the node whose first result is "split". "x:0" is x itself.
std::optional<ValueId> FindByNode(const Graph& g, std::string_view name) {
  size_t colon = name.rfind(':');
  uint32_t number = 0;
  if (colon == std::string_view::npos || !WholeNumber(name.substr(colon + 1), &number)) return std::nullopt;
  std::optional<ValueId> first = FindNamed(g, name.substr(0, colon));
  if (!first || number == 0) return first;
  const Value& v = g.values[*first];
  if (v.kind != ValueKind::kResult || v.result || number >= g.nodes[v.index].out.size()) return std::nullopt;
  return g.nodes[v.index].out[number];
}

}  // namespace

std::string Graph::ValueName(ValueId id) const {
  if (id >= values.size())
    return id == kNoValue ? "none" : absl::StrCat("value ", id, " (which does not exist)");
  const Value& v = values[id];
  if (!v.name.empty()) return v.name;
  if (v.kind == ValueKind::kResult) return ResultName(v.index, v.result);
  if (v.kind == ValueKind::kParam) return absl::StrCat("parameter ", v.index);
  const Constant& c = module->constants[v.index];
  std::string text = PrintElement(c.type.dtype, c.data);
  return absl::StrCat(Name(c.type.dtype), "(", text.empty() ? PrintHex(c.data, c.bytes) : text, ")");
}

std::string Graph::NodeName(NodeId n) const {
  if (!nodes[n].out.empty()) return ValueName(nodes[n].out[0]);
  return nodes[n].name.empty() ? ResultName(n, 0) : nodes[n].name;
}

absl::StatusOr<NodeId> Graph::FindNode(std::string_view name) const {
  if (auto it = nodes_by_name.find(name); it != nodes_by_name.end()) return it->second;
  absl::StatusOr<ValueId> value = Find(name);
  if (value.ok()) return values[*value].kind == ValueKind::kResult ? values[*value].index : kNoValue;
  if (auto number = SplitResultName(name)) {
    auto [node, result] = *number;
    if (node < nodes.size() && !result && nodes[node].out.empty() && nodes[node].name.empty()) return node;
  }
  return value.status();
}

absl::StatusOr<ValueId> Graph::Find(std::string_view name) const {
  std::optional<ValueId> found = FindNamed(*this, name);
  if (!found) found = FindByNode(*this, name);
  if (found) return *found;
  if (nodes_by_name.contains(name))
    return Annotate(NotFound("node '", name, "' of graph '", this->name, "' has no value"), kErrorHint,
                    "name it as a target: it can be run but not fetched");
  return NotFound("graph '", this->name, "' has no value '", name, "'", CloseNames(*this, name));
}

}  // namespace keel
