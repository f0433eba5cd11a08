// names.cc: validity of names, names of unnamed values, and lookup of values by name.

#include <algorithm>
#include <charconv>

#include "kernel/graph/element.h"
#include "kernel/graph/graph_index.h"

namespace keel {
namespace {

// Length of the UTF-8 sequence at the start of s; 0 if it is malformed.
size_t SequenceLength(std::string_view s) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0u; };
  unsigned c = byte(0);
  if (c < 0x80) return 1;
  size_t n = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < n; i++)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  bool overlong = (c == 0xe0 && byte(1) < 0xa0) || (c == 0xf0 && byte(1) < 0x90);
  bool beyond = (c == 0xed && byte(1) > 0x9f) || (c == 0xf4 && byte(1) > 0x8f);  // surrogates, > U+10FFFF
  return overlong || beyond ? 0 : n;
}

// Number of single-character edits, stopping at `limit`.
size_t Distance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() >= limit) return limit;
  std::vector<size_t> row(a.size() + 1);
  for (size_t i = 0; i <= a.size(); i++) row[i] = i;
  for (size_t j = 1; j <= b.size(); j++) {
    size_t diagonal = std::exchange(row[0], j);
    for (size_t i = 1; i <= a.size(); i++) {
      size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[i];
      row[i] = std::min({row[i] + 1, row[i - 1] + 1, change});
    }
  }
  return std::min(row[a.size()], limit);
}

std::string CloseNames(const Graph& g, std::string_view name) {
  std::vector<std::string> close;  // distance, name
  size_t limit = std::min<size_t>(name.size() / 2 + 1, 4), looked = 0;
  auto look = [&](const std::string& known) {
    if (known.empty() || ++looked > 10000) return;
    if (size_t d = Distance(known, name, limit); d < limit) close.push_back(absl::StrCat(d, known));
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

template <typename T>
bool WholeNumber(std::string_view s, T* out) {
  if (s.empty() || (s.size() > 1 && s[0] == '0') || s[0] == '-') return false;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *out);
  return error == std::errc() && end == s.data() + s.size();
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

bool IsUtf8(std::string_view s) {
  while (!s.empty()) {
    size_t n = SequenceLength(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

absl::Status CheckName(std::string_view what, std::string_view name) {
  if (name.empty()) return Invalid(what, " needs a name, got an empty one");
  if (name.size() > kMaxNameBytes)
    return Invalid("the name of ", what, " has ", name.size(), " bytes; the limit is ", kMaxNameBytes);
  for (char c : name)
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f)
      return Invalid("the name of ", what, " contains the control byte ", static_cast<int>(c));
  if (!IsUtf8(name)) return Invalid("the name of ", what, " is not UTF-8");
  return absl::OkStatus();
}

std::string ResultName(NodeId node, uint32_t result) {
  return result == 0 ? absl::StrCat("v", node) : absl::StrCat("v", node, "_", result);
}

std::optional<std::pair<NodeId, uint32_t>> SplitResultName(std::string_view name) {
  if (name.size() < 2 || name[0] != 'v') return std::nullopt;
  name.remove_prefix(1);
  std::pair<NodeId, uint32_t> out{0, 0};
  size_t bar = name.find('_');
  if (!WholeNumber(name.substr(0, bar), &out.first)) return std::nullopt;
  if (bar == std::string_view::npos) return out;
  if (!WholeNumber(name.substr(bar + 1), &out.second) || out.second == 0) return std::nullopt;
  return out;
}

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
