// outline.cc: outlines a group of nodes into the body of a call, and inlines calls and bodies of ops.
#include <algorithm>

#include "kernel/base/hash.h"
#include "kernel/language/graph/copier.h"
#include "kernel/language/graph/graph_sink.h"
#include "kernel/language/graph/new_sizes.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/pass/rewrite.h"

namespace keel {

struct Rewrite::Group {
  std::vector<NodeId> nodes;  // in program order
  HashSet<NodeId> members;
  std::vector<NodeId> later;  // between them, depend on them, and move after the call
  std::vector<ValueId> in, out;
};

namespace {

class GroupCopy : public GraphCopier {
  using GraphCopier::GraphCopier;
  absl::Status Adapt(NodeId, Draft* draft) override {
    draft->origin.device = 0;  // the call has the scope
    return absl::OkStatus();
  }
};

}  // namespace

// Names and origins of the nodes of a body that replace a node.
class Rewrite::BodyCopy : public GraphCopier {
 public:
  BodyCopy(const Rewrite& rewrite, const Graph& body, NodeId call)
      : GraphCopier(body, *rewrite.copy_), rewrite_(rewrite), call_(call), origin_(to_.nodes[call].origin) {}

 private:
  absl::Status Adapt(NodeId n, Draft* draft) override {
    const Node& node = from_.nodes[n];
    for (size_t i = 0; i < node.out.size(); i++)
      draft->names[i] = rewrite_.NameFor(from_, node.out[i], call_);
    if (node.out.empty() && !node.name.empty())
      draft->names = {rewrite_.FreshName(absl::StrCat(to_.NodeName(call_), "/", node.name))};
    draft->origin = {origin_.device, draft->origin.source ? draft->origin.source : origin_.source};
    return absl::OkStatus();
  }

  const Rewrite& rewrite_;
  const NodeId call_;
  const Origin origin_;
};

void Rewrite::SortByPosition(std::vector<NodeId>* nodes) const {
  std::sort(nodes->begin(), nodes->end(), [this](NodeId a, NodeId b) { return Position(a) < Position(b); });
}

absl::StatusOr<Rewrite::Group> Rewrite::CheckGroup(std::span<const NodeId> nodes) {
  if (nodes.empty()) return Invalid("no nodes to outline");
  Group group;
  for (NodeId n : nodes) {
    RETURN_IF_ERROR(CheckAlive(n));
    if (HasAnyEffect(*graph_, graph_->nodes[n]))
      return Invalid("node ", n, " (", OpName(*graph_->nodes[n].op),
                     ") has an effect and cannot be outlined");
    for (ValueId v : graph_->nodes[n].out)
      if (fed_[v]) return Invalid("\"", graph_->ValueName(v), "\" is fed, so its node cannot be outlined");
    if (graph_->nodes[n].origin.device != graph_->nodes[nodes[0]].origin.device)
      return Invalid("nodes ", nodes[0], " and ", n, " have different device scopes");
    if (!group.members.insert(n).second) return Invalid("node ", n, " occurs twice in the group");
  }
  group.nodes.assign(nodes.begin(), nodes.end());
  SortByPosition(&group.nodes);
  return group;
}

// The nodes that read results of a node, or mention the size that it makes.
std::vector<NodeId> Rewrite::Dependents(NodeId n) {
  std::vector<NodeId> all;
  for (ValueId v : graph_->nodes[n].out) all.insert(all.end(), Users(v).begin(), Users(v).end());
  if (!HasNewSize(*graph_->nodes[n].op)) return all;
  const NewSizes sizes(*graph_);
  for (NodeId user : Nodes())
    sizes.ForEach(graph_->nodes[user], [&](ValueId v) {
      if (v == graph_->nodes[n].out[0]) all.push_back(user);
    });
  return all;
}

// Collects the nodes before the call that depend on the group. They must not lead back into the group.
absl::Status Rewrite::CollectLater(Group* group) {
  uint64_t end = Position(group->nodes.back());
  HashSet<NodeId> seen;
  std::vector<NodeId> stack = group->nodes;
  while (!stack.empty()) {
    NodeId n = stack.back();
    stack.pop_back();
    for (NodeId user : Dependents(n)) {
      if (Position(user) > end) continue;
      if (group->members.contains(user)) {
        if (!group->members.contains(n))
          return Invalid("the group is not convex: node ", n, " (", OpName(*graph_->nodes[n].op), " \"",
                         graph_->NodeName(n), "\") is outside, depends on it, and is used by it");
        continue;
      }
      if (!seen.insert(user).second) continue;
      if (HasAnyEffect(*graph_, graph_->nodes[user]))
        return Invalid("node ", user, " (", OpName(*graph_->nodes[user].op),
                       ") is between the group's nodes, depends on them, and has an effect, so it cannot "
                       "move after the group");
      stack.push_back(user);
      group->later.push_back(user);
    }
  }
  SortByPosition(&group->later);
  for (const std::vector<NodeId>* moved : {&group->nodes, &group->later})
    for (NodeId n : *moved)
      if (EffectsOf(*graph_, graph_->nodes[n]).fails &&
          FirstBetween(kKeptNodes, n, group->nodes.back()) != kNoValue)
        return Invalid("node ", n, " (", OpName(*graph_->nodes[n].op),
                       ") may fail and would move after a node with an effect");
  return absl::OkStatus();
}

void Rewrite::FindBoundary(Group* group) {
  HashSet<ValueId> seen;
  for (NodeId n : group->nodes) {
    for (ValueId v : graph_->nodes[n].in)
      if (v != kNoValue && !group->members.contains(Producer(v)) && seen.insert(v).second)
        group->in.push_back(v);
    for (ValueId v : graph_->nodes[n].out) {
      auto users = Users(v);
      bool outside =
          std::any_of(users.begin(), users.end(), [&](NodeId u) { return !group->members.contains(u); });
      if (outside || rooted_[v]) group->out.push_back(v);
    }
  }
}

absl::StatusOr<uint32_t> Rewrite::MakeBody(const Group& group, std::string_view name) {
  auto number = static_cast<uint32_t>(module_->graphs.size());
  ASSIGN_OR_RETURN(Graph * body, module_->AddFreshGraph(name.empty() ? "body" : name));
  GroupCopy copy(*copy_, *body, std::move(outline_map_));
  for (ValueId v : group.in) RETURN_IF_ERROR(copy.AddParam(v, copy_->values[v].name));
  for (NodeId n : group.nodes) RETURN_IF_ERROR(copy.CopyNode(n));
  RETURN_IF_ERROR(copy.AddResults(group.out));
  for (ValueId v : group.in) copy.map[v] = kNoValue;
  for (NodeId n : group.nodes)
    for (ValueId v : copy_->nodes[n].out) copy.map[v] = kNoValue;
  outline_map_ = std::move(copy.map);
  return number;
}

absl::StatusOr<NodeId> Rewrite::Outline(std::span<const NodeId> nodes, std::string_view name) {
  RETURN_IF_ERROR(CheckAllowed());
  ASSIGN_OR_RETURN(Group group, CheckGroup(nodes));
  RETURN_IF_ERROR(CollectLater(&group));
  FindBoundary(&group);
  if (group.out.empty()) return Invalid("the results of the group are unused");
  ASSIGN_OR_RETURN(const OpDef* op, edit_.module->catalogue->Find("call", 1));
  MakeCopy();
  ASSIGN_OR_RETURN(uint32_t body, MakeBody(group, name));
  AttrValue number;
  number.kind = KEEL_ATTR_GRAPH;
  number.i = body;
  Origin origin = copy_->nodes[group.nodes[0]].origin;
  for (NodeId n : group.nodes)  // runtime errors name the source line of a node that may fail
    if (const Node& node = copy_->nodes[n];
        !node.in.empty() && node.in[0] != kNoValue && MayFail(*node.op, copy_->values[node.in[0]].type.dtype))
      origin.source = node.origin.source;
  auto call = static_cast<NodeId>(copy_->nodes.size());
  copy_->nodes.push_back({op, group.in, group.out, {{"body", number}}, origin, ""});
  module_->graphs[body]->called = true;
  // The call takes over the results, which keep their ids, names and users.
  for (uint32_t i = 0; i < group.out.size(); i++) {
    copy_->values[group.out[i]].index = call;
    copy_->values[group.out[i]].result = i;
  }
  NodeId after = next_[group.nodes.back()];
  Insert(call, after);
  outlined_.insert(call);
  edits_++;
  for (NodeId n : group.later) {
    Unlink(n);
    Link(n, after);
  }
  for (NodeId n : group.nodes) {
    alive_[n] = 0;
    Unlink(n);
    DropView(n);
    for (ValueId v : copy_->nodes[n].in)
      if (v != kNoValue) uses_[v]--, stale_[v] = 1;
  }
  return call;
}

// A body's value keeps its name if that is free; otherwise the call's name is prepended. In a plan, where
// messages use the names, a node is named as it would be without the pass.
std::string Rewrite::NameFor(const Graph& body, ValueId value, NodeId call) const {
  const Value& v = body.values[value];
  const std::string& name = v.name;
  if (input_.plan && !outlined_.contains(call) && v.result == 0) {
    bool typed = !IsControl(*graph_->nodes[call].op);
    return FreshName(
        absl::StrCat(typed ? graph_->NodeName(call) : body.name, "/",
                     typed && name.empty() ? OpName(*body.nodes[v.index].op) : body.ValueName(value)));
  }
  if (name.empty()) return "";
  if (!copy_->by_name.contains(name)) return name;
  return FreshName(absl::StrCat(graph_->NodeName(call), "/", name));
}

absl::Status Rewrite::Inline(NodeId n) {
  RETURN_IF_ERROR(CheckAlive(n));
  if (!outlined_.contains(n)) RETURN_IF_ERROR(CheckAllowed());
  ASSIGN_OR_RETURN(const uint32_t body, BodyGraph(n));
  std::vector<ValueId> in = graph_->nodes[n].in;
  std::erase(in, kNoValue);
  RETURN_IF_ERROR(InlineBody(n, body, std::move(in)));
  outlined_.erase(n) ? edits_-- : edits_++;  // undoing an outlining cancels its edit
  return absl::OkStatus();
}

// The graph that a call runs; or the body of an op as a graph, whose parameters are the given operands.
absl::StatusOr<uint32_t> Rewrite::BodyGraph(NodeId n) {
  const OpDef& op = *graph_->nodes[n].op;
  if (IsTypedByGraph(op)) return BodiesOf(graph_->nodes[n].attrs)[0];
  auto refuse = [&](const char* why) { return Invalid("node ", n, " (", OpName(op), ") ", why); };
  if (!HasBody(op) || IsSizedComposite(op))
    return refuse("is neither a call nor an op that consists of others");
  if (!input_.plan) return refuse("stays in a file: a device may compute it");
  ASSIGN_OR_RETURN(Inferred inferred, InferNode(n));
  if (!inferred.checks.empty()) return refuse("checks sizes in each run");  // its nodes would not
  MakeCopy();
  const Node& node = copy_->nodes[n];
  auto number = static_cast<uint32_t>(module_->graphs.size());
  ASSIGN_OR_RETURN(Graph * body, module_->AddFreshGraph(OpName(op)));
  std::vector<ValueId> in;
  for (ValueId v : node.in) {
    in.push_back(kNoValue);
    if (v == kNoValue) continue;
    ASSIGN_OR_RETURN(in.back(), body->AddParam("", copy_->values[v].type));
  }
  GraphSink sink(*body);
  ASSIGN_OR_RETURN(std::vector<ValueId> out,
                   ExpandBody(*module_->catalogue, op, in, inferred.attrs, module_->dims, sink));
  for (size_t i = 0; i < out.size(); i++) {
    RETURN_IF_ERROR(body->AddResult("", out[i]));
    if (body->values[out[i]].type != copy_->values[node.out[i]].type)
      return refuse("has a body of another type");
  }
  if (!body->constant_values.empty() && input_.graph->called && IsBodyOfCall(*module_, graph_->name))
    return refuse("has a body with constants, which bodies of calls lack");
  return number;
}

absl::Status Rewrite::Splice(NodeId n, int64_t graph, std::span<const ValueId> in) {
  RETURN_IF_ERROR(CheckAlive(n));
  const Node& node = graph_->nodes[n];
  if (MustRun(*graph_, node))
    return Invalid("node ", n, " (", OpName(*node.op), ") has effects and must remain");
  std::vector<uint32_t> bodies = BodiesOf(node.attrs);
  if (std::find(bodies.begin(), bodies.end(), graph) == bodies.end())
    return Invalid("node ", n, " (", OpName(*node.op), ") does not call graph ", graph);
  ASSIGN_OR_RETURN(GraphTypes types, edit_.module->BodyTypes(graph));
  auto fit = [&](std::span<const ValueId> values, const std::vector<TensorType>& wanted) {
    return std::ranges::equal(values, wanted, [&](ValueId v, const TensorType& type) {
      return v < graph_->values.size() && graph_->values[v].type == type;
    });
  };
  if (!fit(in, types.params) || !fit(node.out, types.results))
    return Invalid("graph \"", types.name, "\" does not match its operands or the results of node ", n);
  for (ValueId v : in) RETURN_IF_ERROR(CheckUse(v, n));
  for (const auto& [constant, value] : edit_.module->graphs[static_cast<size_t>(graph)]->constant_values)
    if (!graph_->constant_values.contains(constant) &&
        graph_->by_name.contains(edit_.module->constants[constant].name))
      return Invalid("a value \"", edit_.module->constants[constant].name, "\" already exists");
  RETURN_IF_ERROR(CheckAllowed());
  RETURN_IF_ERROR(InlineBody(n, static_cast<uint32_t>(graph), {in.begin(), in.end()}));
  edits_++;
  return absl::OkStatus();
}

absl::Status Rewrite::InlineBody(NodeId call, uint32_t graph, std::vector<ValueId> in) {
  MakeCopy();
  const Graph& body = *module_->graphs[graph];
  std::vector<ValueId> out = copy_->nodes[call].out;
  BodyCopy copy(*this, body, call);
  for (size_t i = 0; i < in.size(); i++) copy.map[body.params[i]] = in[i];
  // Names of values that are now outlined are free again.
  for (const Node& inner : body.nodes)
    for (ValueId v : inner.out)
      if (auto known = copy_->by_name.find(body.values[v].name); known != copy_->by_name.end()) {
        const Value& holder = copy_->values[known->second];
        if (holder.kind == ValueKind::kResult && !Alive(holder.index)) copy_->by_name.erase(known);
      }
  for (NodeId n = 0; n < body.nodes.size(); n++) {
    RETURN_IF_ERROR(copy.CopyNode(n));
    NodeId made = Insert(static_cast<NodeId>(copy_->nodes.size() - 1), call);
    kept_[made] = kept_[call] && MustRun(*copy_, copy_->nodes[made]);
    if (marked_) Mark(made, true);
  }
  // ReplaceUses transfers the call's names to fetched results; other names are transferred here.
  for (size_t i = 0; i < out.size(); i++) {
    ASSIGN_OR_RETURN(ValueId value, copy.Find(body.results[i]));
    Grow();
    bool told = input_.plan && call < input_.graph->nodes.size();
    std::string name = told ? KnownName(*copy_, out[i]) : copy_->values[out[i]].name;
    bool root = rooted_[out[i]];
    RETURN_IF_ERROR(ReplaceUses(out[i], value));
    if (!root && !name.empty() && copy_->values[value].kind == ValueKind::kResult && !rooted_[value]) {
      copy_->values[out[i]].name.clear();
      copy_->values[value].name = name;
      copy_->by_name[name] = value;
    }
  }
  if (marked_) Mark(call, false);
  kept_[call] = 0;
  Kill(call);
  return absl::OkStatus();
}

}  // namespace keel
