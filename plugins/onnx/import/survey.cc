// survey.cc: checks all nodes before any is converted, so that one message names every unsupported operator
// (with its count, its first place and the reason) and attribute of the model.
#include <algorithm>

#include "plugins/onnx/import/importer.h"

namespace onnx_import {
namespace {

bool lists(Text words, Text word) {
  for (size_t at = words.find(word); at != Text::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

std::string full_name(const Node& node, int opset) {
  if (!node.domain.empty()) return cat(node.domain, ".", node.op);
  return find_rule("", node.op, 1 << 20) ? cat(node.op, " of opset ", opset) : std::string(node.op);
}

// The node's name, or that of a result.
std::string place(const Node& node) {
  const auto named =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](Text t) { return !t.empty(); });
  return std::string(!node.name.empty() || named == node.outputs.end() ? node.name : *named);
}

}  // namespace

const Function* Importer::function(const Node& node) const {
  for (const auto& f : model_.functions)
    if (f.name == node.op && f.domain == node.domain && f.overload == node.overload) return &f;
  return nullptr;
}

void Importer::survey(const std::vector<Node>& nodes, int opset, Unsupported& unsupported,
                      std::set<const Function*>& seen) const {
  for (const auto& node : nodes) {
    const auto add = [&](const std::string& what) {
      auto& [count, first] = unsupported[what];
      if (count++ == 0) first = place(node);
    };
    if (const Function* f = function(node)) {
      if (seen.insert(f).second) survey(f->nodes, opset_version(f->opsets), unsupported, seen);
      continue;
    }
    const Control* control = find_control(node.domain, node.op);
    const Rule* rule = control ? nullptr : find_rule(node.domain, node.op, opset);
    if (!rule && !control) {
      const Text reason = reason_against(node.domain, node.op);
      add(full_name(node, opset) + (reason.empty() ? "" : cat(": ", reason)));
      continue;
    }
    for (const auto& a : node.attributes) {
      if (opset < 6 && a.name == "consumed_inputs") continue;  // which operands may be overwritten
      if (!lists(control ? control->attributes : rule->attributes, a.name))
        add(cat("attribute ", a.name, " of ", node.op));
      else if (a.graph && node.op != "If")  // a branch of If may never be taken
        survey(a.graph->nodes, opset, unsupported, seen);
    }
  }
}

void Importer::refuse_unsupported(const std::vector<Node>& nodes, int opset) const {
  Unsupported unsupported;
  std::set<const Function*> seen;
  survey(nodes, opset, unsupported, seen);
  if (unsupported.empty()) return;
  std::string list;
  for (const auto& [name, at] : unsupported)
    list += cat(list.empty() ? "" : ", ", name, " (", at.first, at.first > 1 ? ", first at '" : ", at '",
                at.second, "')");
  refuse(KEEL_UNIMPLEMENTED, cat("the ONNX importer does not support: ", list));
}

}  // namespace onnx_import
