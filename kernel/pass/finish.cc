// finish.cc: the result of a pass: copied node by node through Graph's functions, which infer and check
// everything again; and the edits as a text diff.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "kernel/graph/node_effects.h"
#include "kernel/pass/rewrite.h"

namespace keel {
namespace {

constexpr size_t kMaxDiffLines = 200;

// Copies the needed part of an edited graph into a new graph.
class Writer {
 public:
  Writer(const PassGraph& from, const Graph& old, std::span<const NodeId> order,
         std::span<const uint8_t> kept, size_t originals)
      : from_(from),
        old_(old),
        order_(order),
        kept_(kept),
        originals_(originals),
        map_(old.values.size(), kNoValue),
        fresh_(std::make_unique<Graph>()) {
    fresh_->module = old.module;
    fresh_->name = old.name;
    fresh_->rules = old.rules;
    fresh_->limit = from.plan ? 2 * kMaxNodes : kMaxNodes;  // calls count in addition to their bodies
    fresh_->Reserve(old.values.size(), order.size());
  }

  // unused: types of the feeds that are kNoValue.
  [[gnu::noinline]] absl::Status Run(std::span<const ValueId> roots, std::span<const std::string> names,
                                     std::span<const TensorType> unused = {}) {
    for (size_t i = 0; i < from_.feeds.size(); i++) {
      ValueId v = from_.feeds[i];
      if (v == kNoValue) {
        RETURN_IF_ERROR(fresh_->AddParam("", unused[i]).status());
        continue;
      }
      ASSIGN_OR_RETURN(map_[v], fresh_->AddParam(KnownName(old_, v), old_.values[v].type));
    }
    std::vector<bool> needed = Needed(roots);
    for (NodeId n : order_)
      if (needed[n]) RETURN_IF_ERROR(AddNode(n));
    for (size_t i = 0; i < roots.size(); i++) {
      ASSIGN_OR_RETURN(ValueId v, Mapped(roots[i]));
      bool again = std::ranges::find(names.first(i), names[i]) != names.begin() + static_cast<ptrdiff_t>(i);
      RETURN_IF_ERROR(fresh_->AddResult(again ? "" : names[i], v));  // fetched more than once
    }
    return absl::OkStatus();
  }
  std::unique_ptr<Graph> Take() { return std::move(fresh_); }

 private:
  std::vector<bool> Needed(std::span<const ValueId> roots) {
    std::vector<bool> node(old_.nodes.size()), value(old_.values.size());
    for (ValueId v : roots) value[v] = true;
    for (size_t i = order_.size(); i-- > 0;) {
      const Node& n = old_.nodes[order_[i]];
      bool need = kept_[order_[i]];
      for (ValueId v : n.out) need = need || (value[v] && map_[v] == kNoValue);
      node[order_[i]] = need;
      for (ValueId v : n.in)
        if (need && v != kNoValue) value[v] = true;
    }
    return node;
  }

  absl::StatusOr<ValueId> Mapped(ValueId v) {
    if (map_[v] != kNoValue) return map_[v];
    if (old_.values[v].kind != ValueKind::kConstant)
      return Invalid("\"", old_.ValueName(v), "\" is used before it is computed");
    ASSIGN_OR_RETURN(map_[v], fresh_->AddConstant(old_.values[v].index));
    return map_[v];
  }

  static std::string Suffix(uint32_t result) { return result ? absl::StrCat("_", result) : ""; }

  // In a plan, values keep the names used in messages and reports.
  std::string NameOf(NodeId n, uint32_t result) {
    const Value& v = old_.values[old_.nodes[n].out[result]];
    if (map_[old_.nodes[n].out[result]] != kNoValue) return "";  // fed
    if (!v.name.empty() || !from_.plan) return v.name;
    if (n < originals_) return KnownName(old_, old_.nodes[n].out[result]);
    std::string name = absl::StrCat(OpName(*old_.nodes[n].op), ".", n, Suffix(result));
    return old_.by_name.contains(name) ? "" : name;
  }

  absl::Status AddNode(NodeId n) {
    const Node& node = old_.nodes[n];
    std::vector<ValueId> in;
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (ValueId v : node.in) {
      in.push_back(kNoValue);
      if (v == kNoValue) continue;
      ASSIGN_OR_RETURN(in.back(), Mapped(v));
    }
    for (uint32_t i = 0; i < node.out.size(); i++) {
      names.push_back(NameOf(n, i));
      types.push_back(old_.values[node.out[i]].type);
    }
    if (node.out.empty() && (!node.name.empty() || (from_.plan && n < originals_)))
      if (std::string name = old_.NodeName(n); !old_.by_name.contains(name)) names.push_back(std::move(name));
    fresh_->scope = node.origin;
    ASSIGN_OR_RETURN(NodeId made, fresh_->AddNode(node.op, std::move(in), node.attrs, names, types));
    for (size_t i = 0; i < node.out.size(); i++)
      if (map_[node.out[i]] == kNoValue) map_[node.out[i]] = fresh_->nodes[made].out[i];
    return absl::OkStatus();
  }

  const PassGraph& from_;
  const Graph& old_;
  std::span<const NodeId> order_;
  std::span<const uint8_t> kept_;
  size_t originals_;
  std::vector<ValueId> map_;
  std::unique_ptr<Graph> fresh_;
};

// The effects in order. Calls are expanded, because they may be inlined.
void ListEffects(const Graph& g, std::span<const NodeId> nodes, std::vector<std::string>* out) {
  for (NodeId n : nodes) {
    const Node& node = g.nodes[n];
    if (!MustRun(g, node)) continue;
    if (HasEffect(*node.op) || !IsTypedByGraph(*node.op)) {
      struct Effects e = EffectsOf(g, node);
      out->push_back(absl::StrCat(OpName(*node.op), Describe(*g.module, e)));
      continue;
    }
    const Graph& body = *g.module->graphs[BodiesOf(node.attrs)[0]];
    ListEffects(body, MustRunNodes(body), out);
  }
}

std::vector<std::string> EffectNames(const Graph& g, std::span<const NodeId> nodes) {
  std::vector<std::string> effects;
  ListEffects(g, nodes, &effects);
  return effects;
}

std::string RootName(const Graph& g, ValueId v, const std::string& result_name) {
  return result_name.empty() ? g.values[v].name : result_name;
}

// A pass must preserve the types of feeds, the types and names of results, and the effects.
absl::Status SameContract(const PassGraph& was, const PassGraph& is) {
  const Graph &a = *was.graph, &b = *is.graph;
  for (size_t i = 0; i < was.feeds.size(); i++)
    if (!(a.values[was.feeds[i]].type == b.values[is.feeds[i]].type))
      return Invalid("feed \"", a.ValueName(was.feeds[i]), "\" changed its type");
  for (size_t i = 0; i < was.roots.size(); i++) {
    std::string name = RootName(a, was.roots[i], was.result_names[i]);
    if (!(a.values[was.roots[i]].type == b.values[is.roots[i]].type))
      return Invalid("result ", i, " (\"", name, "\") changed its type");
    if (!name.empty() && name != RootName(b, is.roots[i], is.result_names[i]))
      return Invalid("result ", i, " (\"", name, "\") lost its name");
  }
  std::vector<std::string> before = EffectNames(a, was.effects), after = EffectNames(b, is.effects);
  if (before != after)
    return Invalid("the effects changed: were ", absl::StrJoin(before, ", "), "; are ",
                   absl::StrJoin(after, ", "));
  return absl::OkStatus();
}

}  // namespace

std::string KnownName(const Graph& graph, ValueId v) {
  std::string name = graph.ValueName(v);
  return graph.values[v].name.empty() && graph.by_name.contains(name) ? "" : name;
}

absl::StatusOr<PassGraph> Rewrite::Finish() {
  if (!copy_) return input_;
  Writer writer(input_, *copy_, Nodes(), kept_, input_.graph->nodes.size());
  RETURN_IF_ERROR(writer.Run(roots_, result_names_));
  edited_ = module_->ExchangeGraph(number_, writer.Take());
  module_->graphs[number_]->called = input_.graph->called;
  PassGraph result{module_, module_->graphs[number_].get(), {}, {}, result_names_, {}, input_.plan};
  if (input_.main) result.main = module_->graphs[*module_->GraphNumber(input_.main->name)].get();
  result.feeds = result.graph->params;
  result.roots = result.graph->results;
  result.effects = MustRunNodes(*result.graph);
  RETURN_IF_ERROR(SameContract(input_, result));
  replaced_.reset();
  return result;
}

absl::StatusOr<uint32_t> Rewrite::Derive(int64_t graph, std::span<const ValueId> params, const ValueId* types,
                                         std::span<const ValueId> results) {
  RETURN_IF_ERROR(CheckWrites());
  ASSIGN_OR_RETURN(Rewriter * body, Body(graph));
  const Graph& old = *body->edit()->graph;
  MakeCopy();
  size_t values = old.values.size();
  bool found = std::ranges::all_of(results, [&](ValueId v) { return v < values; });
  std::vector<TensorType> unused(params.size());
  for (size_t i = 0; found && i < params.size(); i++) {
    bool typed = params[i] == kNoValue;
    found = typed ? types[i] < copy_->values.size() : params[i] < values;
    if (typed && found) unused[i] = copy_->values[types[i]].type;
  }
  if (!found) return NotFound("a value does not exist");
  PassGraph part;
  part.feeds.assign(params.begin(), params.end());
  std::vector<NodeId> order(old.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<uint8_t> kept(order.size());
  for (NodeId n : MustRunNodes(old)) kept[n] = 1;
  Writer writer(part, old, order, kept, order.size());
  std::vector<std::string> names(results.size());
  RETURN_IF_ERROR(writer.Run(results, names, unused));
  ASSIGN_OR_RETURN(uint32_t number, AddGraph(old.name));
  std::unique_ptr<Graph> fresh = writer.Take();
  fresh->name = module_->graphs[number]->name;
  module_->ExchangeGraph(number, std::move(fresh));
  return number;
}

std::string Rewrite::Diff() const {
  if (!copy_) return "";
  std::vector<std::string> lines;
  const Graph& old = *input_.graph;
  std::vector<bool> needed = NeededNodes(old, input_.feeds, input_.roots, input_.effects);
  NodeId shown = 0;  // old nodes before this one are in the diff
  auto gone = [&](NodeId end) {
    for (; shown < end; shown++)
      if (needed[shown] && !alive_[shown]) lines.push_back("-" + PrintNode(old, shown));
  };
  for (NodeId n = first_; n != kNoValue && lines.size() < kMaxDiffLines; n = next_[n]) {
    bool added = n >= old.nodes.size();
    if (!added) gone(n);
    std::string now = PrintNode(*copy_, n), was = added ? "" : PrintNode(old, n);
    if (!added && was != now) lines.push_back("-" + was);
    if (was != now) lines.push_back("+" + now);
  }
  gone(static_cast<NodeId>(old.nodes.size()));
  if (lines.size() > kMaxDiffLines) {
    lines.resize(kMaxDiffLines);
    lines.emplace_back("...\n");
  }
  return absl::StrJoin(lines, "");
}

}  // namespace keel
