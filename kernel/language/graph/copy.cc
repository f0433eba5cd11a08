// copy.cc: private copies of modules for passes, required nodes, and removal of unused graphs and constants.

#include <algorithm>

#include "kernel/language/graph/graph.h"
#include "kernel/language/graph/module_index.h"
#include "kernel/language/graph/new_sizes.h"

namespace keel {
namespace {

// The graphs in `start` and their callees.
std::vector<bool> Reached(const Module& m, std::vector<uint32_t> start) {
  std::vector<bool> reached(m.graphs.size());
  while (!start.empty()) {
    uint32_t g = start.back();
    start.pop_back();
    if (reached[g]) continue;
    reached[g] = true;
    for (const Node& node : m.graphs[g]->nodes)
      for (uint32_t body : BodiesOf(node.attrs)) start.push_back(body);
  }
  return reached;
}

std::vector<bool> UsedConstants(const Module& m) {
  std::vector<bool> used(m.constants.size());
  for (const auto& g : m.graphs)
    for (const auto& [constant, value] : g->constant_values) used[constant] = true;
  for (const Case& c : m.cases)
    for (const auto* side : {&c.inputs, &c.expected})
      for (uint32_t constant : *side) used[constant] = true;
  return used;
}

void DropConstants(Module* m) {
  std::vector<bool> used = UsedConstants(*m);
  std::vector<uint32_t> moved(m->constants.size());
  std::vector<Constant> kept;
  for (uint32_t i = 0; i < moved.size(); i++) {
    moved[i] = static_cast<uint32_t>(kept.size());
    if (used[i]) kept.push_back(std::move(m->constants[i]));
  }
  m->constants = std::move(kept);
  auto renumber = [&](auto* map) {
    for (auto it = map->begin(); it != map->end();) {
      auto here = it++;
      if (!used[here->second])
        map->erase(here);
      else
        here->second = moved[here->second];
    }
  };
  renumber(&m->index->constants);
  renumber(&m->index->scalars);
  for (const auto& g : m->graphs) {
    g->constant_values.clear();
    for (ValueId v = 0; v < g->values.size(); v++) {
      if (g->values[v].kind != ValueKind::kConstant) continue;
      g->values[v].index = moved[g->values[v].index];
      g->constant_values.emplace(g->values[v].index, v);
    }
  }
  for (Case& c : m->cases)
    for (auto* side : {&c.inputs, &c.expected})
      for (uint32_t& constant : *side) constant = moved[constant];
}

}  // namespace

std::vector<bool> NeededNodes(const Graph& graph, std::span<const ValueId> feeds,
                              std::span<const ValueId> wanted, std::span<const NodeId> nodes) {
  const NewSizes sizes(graph);
  std::vector<bool> fed(graph.values.size()), value(graph.values.size()), node(graph.nodes.size());
  for (ValueId v : feeds) fed[v] = true;
  for (ValueId v : wanted) value[v] = true;
  for (NodeId n : nodes) {
    const std::vector<ValueId>& out = graph.nodes[n].out;
    node[n] = out.empty() || !std::all_of(out.begin(), out.end(), [&](ValueId v) { return fed[v]; });
  }
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    for (ValueId v : graph.nodes[n].out) node[n] = node[n] || (value[v] && !fed[v]);
    if (!node[n]) continue;
    for (ValueId v : graph.nodes[n].in)
      if (v != kNoValue) value[v] = true;
    sizes.ForEach(graph.nodes[n], [&](ValueId v) { value[v] = true; });
  }
  return node;
}

std::unique_ptr<Module> CopyModule(const Module& from, const Graph* only) {
  auto to = std::make_unique<Module>(from.catalogue);
  to->dims.CopyFrom(from.dims);
  to->constants = from.constants;
  to->variables = from.variables;
  to->index->variables = from.index->variables;
  to->entries = from.entries;
  to->cases = from.cases;
  to->metadata = from.metadata;
  to->devices = from.devices;
  to->files = from.files;
  to->index->constants = from.index->constants;
  to->index->graphs = from.index->graphs;
  to->index->entries = from.index->entries;
  to->index->scalars = from.index->scalars;
  to->index->fresh = from.index->fresh;
  std::vector<bool> whole(from.graphs.size(), true);
  if (only) whole = Reached(from, {from.index->graphs.find(only->name)->second});
  for (size_t g = 0; g < from.graphs.size(); g++) {
    to->graphs.push_back(whole[g] ? std::make_unique<Graph>(*from.graphs[g]) : std::make_unique<Graph>());
    to->graphs.back()->module = to.get();
    to->graphs.back()->name = from.graphs[g]->name;
  }
  return to;
}

void DropUnusedGraphs(Module* m, size_t first_new, Graph* extra) {
  std::vector<uint32_t> old(first_new);
  for (uint32_t g = 0; g < first_new; g++) old[g] = g;
  for (const Entry& entry : m->entries) old.push_back(entry.graph);
  if (std::ranges::any_of(m->graphs, [&](const auto& g) { return g.get() == extra; })) extra = nullptr;
  for (const Node& node : extra ? std::span<const Node>(extra->nodes) : std::span<const Node>())
    for (uint32_t body : BodiesOf(node.attrs)) old.push_back(body);
  std::vector<bool> keep = Reached(*m, old);
  std::vector<uint32_t> moved(m->graphs.size());
  std::vector<std::unique_ptr<Graph>> kept;
  for (uint32_t g = 0; g < m->graphs.size(); g++) {
    moved[g] = static_cast<uint32_t>(kept.size());
    if (keep[g]) kept.push_back(std::move(m->graphs[g]));
  }
  m->graphs = std::move(kept);
  for (Entry& entry : m->entries) entry.graph = moved[entry.graph];
  m->index->graphs.clear();
  auto renumber = [&](Graph& graph) {
    for (Node& node : graph.nodes)
      for (Attr& a : node.attrs)
        ForEachBody(a, [&](int64_t& body) { body = moved[static_cast<size_t>(body)]; });
  };
  for (uint32_t g = 0; g < m->graphs.size(); g++) {
    m->index->graphs.emplace(m->graphs[g]->name, g);
    renumber(*m->graphs[g]);
  }
  if (extra) renumber(*extra);
}

void DropUnused(Module* m, size_t first_new) {
  DropUnusedGraphs(m, first_new);
  DropConstants(m);
}

void Module::DropGraphs(size_t first) noexcept {
  for (; graphs.size() > first; graphs.pop_back()) index->graphs.erase(graphs.back()->name);
}

std::unique_ptr<Graph> Module::ExchangeGraph(uint32_t number, std::unique_ptr<Graph> graph) noexcept {
  graph->module = this;
  graphs[number].swap(graph);
  return graph;
}

}  // namespace keel
