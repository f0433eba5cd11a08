// finish.cc: the result of a pass: copied node by node through Graph's functions, which infer and check
// everything again; and the edits as a text diff.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "kernel/language/graph/copier.h"
#include "kernel/language/graph/graph_sink.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/pass/rewrite.h"

namespace keel {
namespace {

constexpr size_t kMaxDiffLines = 200;

// Copies the needed part of an edited graph into a new graph.
class Writer : public GraphCopier {
 public:
  Writer(const PassGraph& from, const Graph& old, Graph& fresh, std::span<const NodeId> order,
         std::span<const uint8_t> kept, size_t originals)
      : GraphCopier(old, fresh), graph_(from), order_(order), kept_(kept), originals_(originals) {
    fresh.module = old.module;
    fresh.name = old.name;
    fresh.rules = old.rules;
    fresh.limit = from.plan ? 2 * kMaxNodes : kMaxNodes;  // calls count in addition to their bodies
    fresh.Reserve(old.values.size(), order.size());
  }

  // unused: types of the feeds that are kNoValue.
  [[gnu::noinline]] absl::Status Run(std::span<const ValueId> roots, std::span<const std::string> names,
                                     std::span<const TensorType> unused = {}) {
    for (size_t i = 0; i < graph_.feeds.size(); i++) {
      ValueId v = graph_.feeds[i];
      RETURN_IF_ERROR(v == kNoValue ? to_.AddParam("", unused[i]).status()
                                    : AddParam(v, KnownName(from_, v)));
    }
    std::vector<bool> needed = Needed(roots);
    for (NodeId n : order_)
      if (needed[n]) RETURN_IF_ERROR(CopyNode(n));
    std::vector<std::string> once(names.begin(), names.end());
    for (size_t i = 0; i < once.size(); i++)  // fetched more than once
      if (std::ranges::find(names.first(i), names[i]) != names.begin() + static_cast<ptrdiff_t>(i))
        once[i].clear();
    return AddResults(roots, once);
  }

 private:
  std::vector<bool> Needed(std::span<const ValueId> roots) {
    std::vector<bool> node(from_.nodes.size()), value(from_.values.size());
    for (ValueId v : roots) value[v] = true;
    for (size_t i = order_.size(); i-- > 0;) {
      const Node& n = from_.nodes[order_[i]];
      bool need = kept_[order_[i]] || HasNewSize(*n.op);  // other nodes may mention the size
      for (ValueId v : n.out) need = need || (value[v] && map[v] == kNoValue);
      node[order_[i]] = need;
      for (ValueId v : n.in)
        if (need && v != kNoValue) value[v] = true;
    }
    return node;
  }

  // In a plan, values keep the names used in messages and reports.
  std::string NameOf(NodeId n, ValueId v) {
    const Value& value = from_.values[v];
    if (map[v] != kNoValue) return "";  // fed
    if (!value.name.empty() || !graph_.plan) return value.name;
    if (n < originals_) return KnownName(from_, v);
    std::string name =
        absl::StrCat(OpName(*from_.nodes[n].op), ".", n, value.result ? absl::StrCat("_", value.result) : "");
    return from_.by_name.contains(name) ? "" : name;
  }

  absl::Status Adapt(NodeId n, Draft* draft) override {
    const Node& node = from_.nodes[n];
    for (size_t i = 0; i < node.out.size(); i++) draft->names[i] = NameOf(n, node.out[i]);
    if (!node.out.empty()) return absl::OkStatus();
    draft->names.clear();
    if (!node.name.empty() || (graph_.plan && n < originals_))
      if (std::string name = from_.NodeName(n); !from_.by_name.contains(name)) draft->names = {name};
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueId>> Add(Draft draft) override {
    if (!graph_.plan || !IsSizedComposite(*draft.op)) return GraphCopier::Add(std::move(draft));
    to_.scope = draft.origin;
    GraphSink body(to_);
    ASSIGN_OR_RETURN(std::vector<ValueId> out, ExpandBody(*to_.module->catalogue, *draft.op, draft.in,
                                                          draft.attrs, to_.module->dims, body));
    for (size_t i = 0; i < out.size(); i++)
      if (!draft.names[i].empty()) RETURN_IF_ERROR(to_.NameValue(out[i], draft.names[i]));
    return out;
  }

  const PassGraph& graph_;
  std::span<const NodeId> order_;
  std::span<const uint8_t> kept_;
  size_t originals_;
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
  auto fresh = std::make_unique<Graph>();
  RETURN_IF_ERROR(
      Writer(input_, *copy_, *fresh, Nodes(), kept_, input_.graph->nodes.size()).Run(roots_, result_names_));
  edited_ = module_->ExchangeGraph(number_, std::move(fresh));
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
  auto fresh = std::make_unique<Graph>();
  std::vector<std::string> names(results.size());
  RETURN_IF_ERROR(Writer(part, old, *fresh, order, kept, order.size()).Run(results, names, unused));
  auto number = static_cast<uint32_t>(module_->graphs.size());
  ASSIGN_OR_RETURN(Graph * made, module_->AddFreshGraph(old.name));
  fresh->name = made->name;
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
