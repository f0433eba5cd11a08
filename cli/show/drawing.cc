// drawing.cc: text form to dot. See drawing.h.
//
// How to read it: libkeel prints one statement per line, so a line is split at separators outside quotes and
// brackets; each node becomes a box and each use of a value an arrow.
#include "cli/show/drawing.h"

#include <fmt/core.h>

#include <map>

namespace cli {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

// The first `separator` outside quotes and brackets, or npos.
size_t find_outside(std::string_view s, char separator, size_t from = 0) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = from; i < s.size(); i++) {
    char c = s[i];
    if (quoted) {
      i += c == '\\';
      quoted = c != '"';
      continue;
    }
    if (depth == 0 && c == separator) return i;
    quoted = c == '"';
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
  }
  return std::string_view::npos;
}

std::vector<std::string> split_list(std::string_view s) {
  std::vector<std::string> out;
  while (!trim(s).empty()) {
    size_t comma = std::min(find_outside(s, ','), s.size());
    out.emplace_back(trim(s.substr(0, comma)));
    s.remove_prefix(std::min(comma + 1, s.size()));
  }
  return out;
}

// The contents of the bracket at the start of `s`; moves `s` past it.
std::string_view take_bracket(std::string_view& s, char close) {
  size_t end = std::min(find_outside(s, close, 1), s.size());
  std::string_view inside = s.substr(1, end - 1);
  s.remove_prefix(std::min(end + 1, s.size()));
  return inside;
}

// y, z = op(a, b){attrs} : type
DrawnNode read_node(std::string_view line) {
  DrawnNode node;
  size_t equals = find_outside(line, '=');
  if (equals != std::string_view::npos) {
    node.out = split_list(line.substr(0, equals));
    line = trim(line.substr(equals + 1));
  }
  size_t open = std::min(line.find('('), line.size());
  node.op = trim(line.substr(0, open));
  if (size_t label = node.op.rfind(": "); label != std::string::npos)
    node.op.erase(0, label + 2);  // step: op
  line.remove_prefix(open);
  if (!line.empty()) node.in = split_list(take_bracket(line, ')'));
  line = trim(line);
  if (line.starts_with("{")) node.attrs = take_bracket(line, '}');
  line = trim(line);
  if (line.starts_with(":")) node.type = trim(line.substr(1));
  return node;
}

// fn @main(x: f32[b, 2]) -> f32[b, 2] {
DrawnGraph read_head(std::string_view line) {
  DrawnGraph graph;
  line = trim(line.substr(2));
  size_t open = std::min(find_outside(line, '('), line.size());
  graph.name = trim(line.substr(0, open));
  line.remove_prefix(open);
  if (line.empty()) return graph;
  for (const std::string& p : split_list(take_bracket(line, ')'))) {
    size_t colon = std::min(find_outside(p, ':'), p.size());
    graph.params.emplace_back(trim(std::string_view(p).substr(0, colon)),
                              trim(std::string_view(p).substr(std::min(colon + 1, p.size()))));
  }
  return graph;
}

std::string escape(std::string_view s, size_t longest = 60) {
  std::string out;
  for (char c : s.substr(0, longest)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  // Do not cut a UTF-8 sequence.
  if (s.size() > longest) {
    while (!out.empty() && static_cast<signed char>(out.back()) < 0) out.pop_back();
    out += "...";
  }
  return out;
}

void draw_node(const DrawnNode& node, const std::string& id, std::map<std::string, std::string>& made,
               std::string& dot) {
  std::string label = escape(node.op), arrows;
  if (!node.attrs.empty()) label += "\\n{" + escape(node.attrs) + "}";
  for (const std::string& in : node.in) {
    auto from = made.find(in);
    if (from == made.end())
      label += "\\n" + escape(in);  // a constant or a literal
    else
      arrows += fmt::format("    {} -> {};\n", from->second, id);
  }
  if (!node.type.empty()) label += "\\n" + escape(node.type);
  dot += fmt::format("    {} [label=\"{}\", tooltip=\"{}\"];\n", id, label,
                     escape(node.out.empty() ? "" : node.out[0]));
  dot += arrows;
  for (const std::string& name : node.out) made[name] = id;
}

void draw_graph(const DrawnGraph& graph, size_t number, std::string& dot) {
  std::map<std::string, std::string> made;  // value name -> box
  auto id = [&](char kind, size_t i) { return fmt::format("g{}{}{}", number, kind, i); };
  dot += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", number, escape(graph.name));
  for (size_t i = 0; i < graph.params.size(); i++) {
    const auto& [name, type] = graph.params[i];
    made[name] = id('p', i);
    dot +=
        fmt::format("    {} [label=\"{}\\n{}\", shape=ellipse];\n", id('p', i), escape(name), escape(type));
  }
  for (size_t i = 0; i < graph.nodes.size(); i++) draw_node(graph.nodes[i], id('n', i), made, dot);
  for (size_t i = 0; i < graph.results.size(); i++) {
    dot += fmt::format("    {} [label=\"{}\", shape=ellipse, style=bold];\n", id('r', i),
                       escape(graph.results[i]));
    if (auto from = made.find(graph.results[i]); from != made.end())
      dot += fmt::format("    {} -> {};\n", from->second, id('r', i));
  }
  dot += "  }\n";
}

}  // namespace

namespace {

// An inline body: `then(x, y) {`; it becomes a separate graph named after its node.
DrawnGraph read_body(std::string_view line, const DrawnGraph& owner) {
  DrawnGraph graph = read_head("fn" + std::string(line));
  if (!owner.nodes.empty() && !owner.nodes.back().out.empty())
    graph.name = owner.nodes.back().out[0] + ": " + graph.name;
  return graph;
}

bool begins(std::string_view line, std::string_view word) {
  return line.starts_with(word) && (line.size() == word.size() || line[word.size()] == ' ');
}

}  // namespace

std::vector<DrawnGraph> read_graphs(std::string_view text) {
  std::vector<DrawnGraph> out;
  std::vector<size_t> open;  // the enclosing graphs of the line
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (size_t effects = line.find("{  # "); effects != line.npos) line = line.substr(0, effects + 1);
    if (open.empty() && !line.starts_with("fn ")) continue;
    if (line.ends_with("{")) {
      out.push_back(open.empty() ? read_head(line) : read_body(line, out[open.back()]));
      open.push_back(out.size() - 1);
    } else if (line.starts_with("}")) {
      open.pop_back();
      size_t colon = line.find(':');
      if (colon != std::string_view::npos) out[open.back()].nodes.back().type = trim(line.substr(colon + 1));
    } else if (begins(line, "return") || begins(line, "yield")) {
      out[open.back()].results = split_list(line.substr(line[0] == 'r' ? 6 : 5));
    } else if (!line.empty() && line.front() != '#') {
      out[open.back()].nodes.push_back(read_node(line));
    }
  }
  return out;
}

std::string to_dot(const std::vector<DrawnGraph>& graphs) {
  std::string dot = "digraph keel {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n";
  for (size_t i = 0; i < graphs.size(); i++) draw_graph(graphs[i], i, dot);
  return dot + "}\n";
}

}  // namespace cli
