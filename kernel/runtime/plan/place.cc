// place.cc: chooses the device of each node by pattern, scope or default; then moves nodes whose device has
// no impl to a fallback.
#include "kernel/runtime/plan/place.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_join.h"

#include "kernel/language/graph/node_effects.h"

namespace keel {
namespace {

constexpr size_t kMaxShown = 40;

bool Matches(const Graph& graph, const Node& node, const std::string& pattern) {
  for (ValueId v : node.out)
    if (MatchesGlob(pattern, graph.ValueName(v))) return true;
  return node.out.empty() &&
         MatchesGlob(pattern, graph.NodeName(static_cast<NodeId>(&node - graph.nodes.data())));
}

absl::Status CheckPatterns(const Graph& graph, const Placing& placing) {
  for (const PlaceRule& rule : placing.rules) {
    bool used = false;
    for (const Node& node : graph.nodes) used = used || Matches(graph, node, rule.pattern);
    if (used) continue;
    std::vector<std::string> some;
    for (size_t n = 0; n < std::min<size_t>(graph.nodes.size(), 8); n++)
      some.push_back(graph.NodeName(static_cast<NodeId>(n)));
    return Annotate(NotFound("place: \"", rule.pattern, "\" matches no node of graph \"", graph.name,
                             "\"; its nodes are ", absl::StrJoin(some, ", "),
                             graph.nodes.size() > some.size() ? ", ..." : ""),
                    kErrorHint, "write PATTERN=DEVICE with * and ? for parts of names");
  }
  return absl::OkStatus();
}

using LackingOps = std::map<NodeId, std::set<std::string>>;

// Nodes that a device can run neither with an impl nor with a body, and their missing ops.
absl::StatusOr<LackingOps> Lacking(PlanRequest request, Device* device, Device* host) {
  PlanOptions probe;
  probe.observe = probe.probe = true;
  probe.host = host;
  request.device = device;
  RETURN_IF_ERROR(device->Open().status());
  ASSIGN_OR_RETURN(std::unique_ptr<Lowered> lowered, Lower(request, probe));
  return std::move(lowered->lacking);
}

absl::Status LackError(const Graph& graph, const std::vector<std::pair<PlacedNode*, std::string>>& lacking) {
  std::vector<std::string> shown;
  for (const auto& [placed, what] : lacking)
    if (shown.size() < kMaxShown)
      shown.push_back(
          absl::StrCat(what, " \"", graph.NodeName(placed->node), "\" on ", placed->device->name()));
  return Annotate(Unimplemented("no impl or body for ", lacking.size(),
                                lacking.size() == 1 ? " node: " : " nodes: ", absl::StrJoin(shown, ", "),
                                lacking.size() > shown.size() ? ", ..." : ""),
                  kErrorHint, "place them on another device, or name one as fallback");
}

// The placed nodes that their device cannot run, and their missing ops. known: results of earlier calls, by
// device.
absl::StatusOr<std::vector<std::pair<PlacedNode*, std::string>>> AllLacking(
    const PlanRequest& request, std::vector<PlacedNode>& placed, const PlanOptions& options,
    std::map<Device*, LackingOps>* known) {
  std::vector<std::pair<PlacedNode*, std::string>> all;
  for (PlacedNode& p : placed) {
    if (options.core && p.device == &options.core->variables) continue;  // needs no impls
    auto [of_device, is_new] = known->try_emplace(p.device);
    if (is_new) {
      ASSIGN_OR_RETURN(of_device->second, Lacking(request, p.device, options.host));
    }
    if (auto it = of_device->second.find(p.node); it != of_device->second.end())
      all.emplace_back(&p, absl::StrJoin(it->second, " and "));
  }
  return all;
}

// An observer sees host copies of values, also of those of variables.
PlacedNode PlaceOnHost(NodeId node, const OpDef& op, const PlanOptions& options) {
  if (IsVariableOp(op) && !options.observe) return {node, &options.core->variables, "shares arrays"};
  return {node, &options.core->host, "runs only on the host"};
}

}  // namespace

bool HasNewSizes(const Graph& graph, const std::vector<bool>& needed) {
  for (size_t n = 0; graph.new_sizes && n < needed.size(); n++)
    if (needed[n] && (HasNewSize(*graph.nodes[n].op) || BodiesMakeSizes(*graph.module, graph.nodes[n].attrs)))
      return true;
  return false;
}

bool NeedsPlacing(const Graph& graph, const Placing& placing) {
  if (!placing.rules.empty() || !placing.fallbacks.empty()) return true;
  return !graph.module->devices.empty() && std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                                       [](const Node& n) { return n.origin.device != 0; });
}

bool CallsEffects(const Graph& graph, const Node& node) {
  return IsTypedByGraph(*node.op) && HasAnyEffect(graph, node) &&
         !BodiesMakeSizes(*graph.module, node.attrs);  // runs as a plan of its own (sized_bodies.h)
}

bool IsWrittenOut(const Graph& graph, const Node& node) {
  return IsSizedComposite(*node.op) || CallsEffects(graph, node);
}

bool NeedsHost(const Graph& graph, const std::vector<bool>& needed) {
  if (!graph.effects.Any()) return false;
  for (size_t n = 0; n < needed.size(); n++)
    if (needed[n] && (IsCore(*graph.nodes[n].op) || CallsEffects(graph, graph.nodes[n]))) return true;
  return false;
}

bool MatchesGlob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      p++, t++;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') p++;
  return p == pattern.size();
}

absl::StatusOr<std::vector<PlacedNode>> Place(const PlanRequest& request, const Placing& placing,
                                              const PlanOptions& options) {
  const Graph& graph = *request.graph;
  const std::vector<bool> needed = request.Needed();
  RETURN_IF_ERROR(CheckPatterns(graph, placing));
  std::vector<PlacedNode> placed;
  for (NodeId n = 0; n < graph.nodes.size(); n++) {
    if (!needed[n]) continue;
    const Node& node = graph.nodes[n];
    PlacedNode p{n, request.device, "default"};
    if (node.origin.device) {
      const std::string& scope = graph.module->devices[node.origin.device - 1];
      absl::StatusOr<Device*> found = placing.find(scope);
      if (!found.ok())
        return Annotate(Error(found.status().code(), "the device scope of node \"", graph.NodeName(n),
                              "\": ", found.status().message()),
                        kErrorHint, ErrorFact(found.status(), kErrorHint));
      p = {n, *found, "scope"};
    }
    for (const PlaceRule& rule : placing.rules)
      if (Matches(graph, node, rule.pattern)) {
        p = {n, rule.device, absl::StrCat("pattern ", rule.pattern)};
        break;
      }
    if (IsCore(*node.op) && !p.device->host_memory()) p = PlaceOnHost(n, *node.op, options);
    if (HasNewSize(*node.op)) p = {n, &options.core->variables, "its size is known in a run only"};
    if (BodiesMakeSizes(*graph.module, node.attrs))
      p = {n, &options.core->variables, "a run finds sizes in its bodies"};
    placed.push_back(std::move(p));
  }
  std::map<Device*, LackingOps> known;
  ASSIGN_OR_RETURN(auto lacking, AllLacking(request, placed, options, &known));
  for (size_t i = 0; i < placing.fallbacks.size() && !lacking.empty(); i++) {
    for (auto& [p, what] : lacking) {  // after the first round all of them have moved
      p->why = absl::StrCat(i ? p->why + ", " : "fallback: ", p->device->name(), " lacks ", what);
      p->device = placing.fallbacks[i];
    }
    ASSIGN_OR_RETURN(lacking, AllLacking(request, placed, options, &known));
  }
  return lacking.empty() ? absl::StatusOr<std::vector<PlacedNode>>(std::move(placed))
                         : LackError(graph, lacking);
}

absl::StatusOr<Device*> ChooseDevice(Registry& registry, PlanRequest request, const Placing& placing,
                                     const PlanOptions& options) {
  AutoDevices found = registry.Auto();
  for (Device* device : found.devices) {
    request.device = device;
    const absl::Status placed = Place(request, placing, options).status();
    if (placed.ok()) return device;
    if (!absl::IsUnimplemented(placed) && device->Open().ok())
      return placed;  // of the graph, not of the device
    found.passed_over.push_back(absl::StrCat(device->name(), ": ", placed.message()));
  }
  return found.Error(absl::StrCat("graph \"", request.graph->name, "\""));
}

}  // namespace keel
