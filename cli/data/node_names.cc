// node_names.cc: see node_names.h.
#include "cli/data/node_names.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

namespace cli {
namespace {

bool unnamed(const keel::Node& node) {  // "v12"
  return node.name.size() > 1 && node.name[0] == 'v' &&
         std::all_of(node.name.begin() + 1, node.name.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The node and the unnamed nodes that feed only it.
void add_with_unnamed(const std::map<std::string, const keel::Node*>& by_result, const std::string& name,
                      std::set<std::string>& found) {
  auto at = by_result.find(name);
  if (at == by_result.end() || !found.insert(name).second) return;
  for (const std::string& in : at->second->inputs) {
    auto before = by_result.find(in);
    if (before != by_result.end() && unnamed(*before->second)) add_with_unnamed(by_result, in, found);
  }
}

}  // namespace

bool matches(const std::string& pattern, const std::string& text) {
  size_t p = 0, t = 0, star = std::string::npos, after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*')
      star = p++, after = t;
    else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]))
      p++, t++;
    else if (star != std::string::npos)
      p = star + 1, t = ++after;
    else
      return false;
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

NodeNames::NodeNames(const Model& model) {
  const Json& metadata = model.info.at("metadata");
  if (!metadata.contains(kNodeNames)) return;
  std::istringstream lines(metadata.at(kNodeNames).get<std::string>());
  for (std::string line; std::getline(lines, line);) {
    size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    results_[line.substr(0, tab)] = line.substr(tab + 1);
    nodes_[line.substr(tab + 1)] = line.substr(0, tab);
  }
}

const std::string& NodeNames::result_of(const std::string& node) const {
  auto found = results_.find(node);
  return found == results_.end() ? node : found->second;
}

const std::string& NodeNames::node_of(const std::string& result) const {
  static const std::string none;
  auto found = nodes_.find(result);
  return found == nodes_.end() ? none : found->second;
}

std::vector<std::string> NodeNames::nodes() const {
  std::vector<std::string> names;
  for (const auto& [node, result] : results_) names.push_back(node);
  return names;
}

std::vector<std::string> NodeNames::place_rules(const std::string& rule, keel::Module& module,
                                                const std::string& entry) const {
  const size_t equals = rule.rfind('=');
  if (equals == std::string::npos || results_.empty()) return {rule};
  const std::string pattern = rule.substr(0, equals), device = rule.substr(equals);
  const std::vector<keel::Node> all = module.graph_of(entry).nodes();
  std::map<std::string, const keel::Node*> by_result;
  bool own = false;  // whether it matches Keel names
  for (const keel::Node& node : all)
    for (const std::string& out : node.outputs) {
      by_result[out] = &node;
      own = own || matches(pattern, out);
    }
  std::set<std::string> found;
  for (const auto& [node, result] : results_)
    if (matches(pattern, node)) add_with_unnamed(by_result, result, found);
  std::vector<std::string> rules;
  for (const std::string& name : found) rules.push_back(name + device);
  if (own || rules.empty()) rules.push_back(rule);
  return rules;
}

}  // namespace cli
