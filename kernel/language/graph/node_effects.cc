#include "kernel/language/graph/node_effects.h"

#include <algorithm>

#include "kernel/language/graph/text.h"

namespace keel {
namespace {

// Tests the op's own effect first: most nodes have neither effects nor bodies.
template <typename Predicate>
bool AnyEffects(const Graph& g, const Node& node, bool own, Predicate holds) {
  if (own) return true;
  for (const Attr& a : node.attrs) {
    if (a.value.kind == KEEL_ATTR_GRAPH && holds(g.module->graphs[static_cast<size_t>(a.value.i)]->effects))
      return true;
    if (a.value.kind != KEEL_ATTR_GRAPHS) continue;
    for (int64_t body : a.value.list)
      if (holds(g.module->graphs[static_cast<size_t>(body)]->effects)) return true;
  }
  return false;
}

}  // namespace

bool HasAnyEffect(const Graph& g, const Node& node) {
  return AnyEffects(g, node, HasEffect(*node.op), [](const Effects& e) { return e.Any(); });
}

bool MustRun(const Graph& g, const Node& node) {
  EffectKind kind = EffectOf(*node.op);
  bool own = kind != EffectKind::kNone && kind != EffectKind::kRead && kind != EffectKind::kRng;
  return AnyEffects(g, node, own, [](const Effects& e) { return e.MustRun(); });
}

bool IsOrdered(const Graph& g, const Node& node) {
  return AnyEffects(g, node, HasEffect(*node.op) || FailsOnData(g, node),
                    [](const Effects& e) { return e.Any() || e.fails; });
}

bool Writes(const Graph& g, const Node& node, const std::vector<uint32_t>& variables) {
  if (!MustRun(g, node)) return false;
  Effects e = EffectsOf(g, node);
  return e.host || std::any_of(variables.begin(), variables.end(), [&](uint32_t v) {
           return std::binary_search(e.writes.begin(), e.writes.end(), v);
         });
}

std::vector<uint32_t> MustRunNodes(const Graph& g) {
  std::vector<uint32_t> nodes;
  if (!g.effects.MustRun()) return nodes;
  for (NodeId n = 0; n < g.nodes.size(); n++)
    if (MustRun(g, g.nodes[n])) nodes.push_back(n);
  return nodes;
}

std::string Describe(const Module& m, const Effects& e) {
  std::string text;
  auto list = [&](const char* verb, const std::vector<uint32_t>& variables) {
    for (size_t i = 0; i < variables.size(); i++)
      absl::StrAppend(&text, i ? ", " : verb, SpellName(m.variables[variables[i]].name));
  };
  list("  reads ", e.reads);
  list("  writes ", e.writes);
  if (e.err || e.out)
    absl::StrAppend(&text, "  prints ", e.err && e.out ? "err, out" : e.err ? "err" : "out");
  if (e.guard) text += "  may stop";
  if (e.host) text += "  calls the host";
  return text;
}

}  // namespace keel
