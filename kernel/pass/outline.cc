// outline.cc: a group of nodes becomes the body of a call, and back.
#include <algorithm>

#include "kernel/base/free_name.h"
#include "kernel/base/hash.h"
#include "kernel/pass/rewrite.h"

namespace keel {

struct Rewrite::Group {
  std::vector<NodeId> nodes;  // in program order
  HashSet<NodeId> members;
  std::vector<NodeId> later;  // stand among them, need them, and have to stand behind the call
  std::vector<ValueId> in, out;
};

void Rewrite::SortByPlace(std::vector<NodeId>* nodes) const {
  std::sort(nodes->begin(), nodes->end(), [this](NodeId a, NodeId b) { return Place(a) < Place(b); });
}

absl::StatusOr<Rewrite::Group> Rewrite::Gather(std::span<const NodeId> nodes) {
  if (nodes.empty()) return Invalid("no nodes to outline");
  Group group;
  for (NodeId n : nodes) {
    if (!Alive(n)) return NotFound("node ", n, " does not exist (any more)");
    if (HasAnyEffect(*graph_, graph_->nodes[n]))
      return Invalid("node ", n, " (", OpName(*graph_->nodes[n].op),
                     ") has an effect and cannot be outlined");
    for (ValueId v : graph_->nodes[n].out)
      if (fed_[v]) return Invalid("\"", graph_->ValueName(v), "\" is fed, so its node cannot be outlined");
    if (graph_->nodes[n].origin.device != graph_->nodes[nodes[0]].origin.device)
      return Invalid("nodes ", nodes[0], " and ", n, " have different device scopes");
    if (!group.members.insert(n).second) return Invalid("node ", n, " is in the group twice");
  }
  group.nodes.assign(nodes.begin(), nodes.end());
  SortByPlace(&group.nodes);
  return group;
}

// Follows what needs the group up to the place of the call: it must not lead back into the group.
absl::Status Rewrite::Separate(Group* group) {
  uint64_t end = Place(group->nodes.back());
  HashSet<NodeId> seen;
  std::vector<NodeId> stack = group->nodes;
  while (!stack.empty()) {
    NodeId n = stack.back();
    stack.pop_back();
    for (ValueId v : graph_->nodes[n].out)
      for (NodeId user : Users(v)) {
        if (Place(user) > end) continue;
        if (group->members.contains(user)) {
          if (!group->members.contains(n))
            return Invalid("the group is not convex: node ", n, " (", OpName(*graph_->nodes[n].op), " \"",
                           graph_->NodeName(n), "\") is outside, needs it, and is needed by it");
          continue;
        }
        if (!seen.insert(user).second) continue;
        if (HasAnyEffect(*graph_, graph_->nodes[user]))
          return Invalid(
              "node ", user, " (", OpName(*graph_->nodes[user].op),
              ") stands among the group, needs it, and has an effect, so it cannot be moved behind it");
        stack.push_back(user);
        group->later.push_back(user);
      }
  }
  SortByPlace(&group->later);
  for (const std::vector<NodeId>* moved : {&group->nodes, &group->later})
    for (NodeId n : *moved)
      if (EffectsOf(*graph_, graph_->nodes[n]).fails &&
          Between(kKeptOnes, n, group->nodes.back()) != kNoValue)
        return Invalid("node ", n, " (", OpName(*graph_->nodes[n].op),
                       ") may fail and would be moved behind a node with an effect");
  return absl::OkStatus();
}

void Rewrite::Boundary(Group* group) {
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

absl::StatusOr<uint32_t> Rewrite::AddGraph(std::string_view name) {
  std::string own = FreeName(name, [&](const std::string& n) { return own_->GraphNumber(n).ok(); });
  RETURN_IF_ERROR(own_->AddGraph(own).status());
  return static_cast<uint32_t>(own_->graphs.size() - 1);
}

absl::StatusOr<uint32_t> Rewrite::MakeBody(const Group& group, std::string_view name) {
  ASSIGN_OR_RETURN(uint32_t number, AddGraph(name.empty() ? "body" : name));
  Graph* body = own_->graphs[number].get();
  HashMap<ValueId, ValueId> map;
  for (ValueId v : group.in) {  // "p1" may be what the body calls one without a name
    const std::string& called = graph_->values[v].name;
    ASSIGN_OR_RETURN(map[v],
                     body->AddParam(body->by_name.contains(called) ? "" : called, graph_->values[v].type));
  }
  for (NodeId n : group.nodes) {
    const Node& node = mine_->nodes[n];
    std::vector<ValueId> in;
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (ValueId v : node.in) in.push_back(v == kNoValue ? kNoValue : map.at(v));
    for (ValueId v : node.out) {
      names.push_back(body->by_name.contains(mine_->values[v].name) ? "" : mine_->values[v].name);
      types.push_back(mine_->values[v].type);
    }
    body->scope.source = node.origin.source;
    ASSIGN_OR_RETURN(NodeId made, body->AddNode(node.op, std::move(in), node.attrs, names, types));
    for (size_t i = 0; i < node.out.size(); i++) map[node.out[i]] = body->nodes[made].out[i];
  }
  for (ValueId v : group.out) RETURN_IF_ERROR(body->AddResult("", map.at(v)));
  return number;
}

absl::StatusOr<NodeId> Rewrite::Outline(std::span<const NodeId> nodes, std::string_view name) {
  RETURN_IF_ERROR(CheckAllowed());
  ASSIGN_OR_RETURN(Group group, Gather(nodes));
  RETURN_IF_ERROR(Separate(&group));
  Boundary(&group);
  if (group.out.empty()) return Invalid("nobody needs what the group computes");
  ASSIGN_OR_RETURN(const OpDef* op, edit_.module->catalogue->Find("call", 1));
  Own();
  ASSIGN_OR_RETURN(uint32_t body, MakeBody(group, name));
  AttrValue number;
  number.kind = KEEL_ATTR_GRAPH;
  number.i = body;
  Origin origin = mine_->nodes[group.nodes[0]].origin;
  for (NodeId n : group.nodes)  // errors of a run name the line of what may fail
    if (const Node& node = mine_->nodes[n];
        !node.in.empty() && node.in[0] != kNoValue && MayFail(*node.op, mine_->values[node.in[0]].type.dtype))
      origin.source = node.origin.source;
  auto call = static_cast<NodeId>(mine_->nodes.size());
  mine_->nodes.push_back({op, group.in, group.out, {{"body", number}}, origin, ""});
  own_->graphs[body]->called = true;
  // The call takes the results over: they keep their numbers, names and users.
  for (uint32_t i = 0; i < group.out.size(); i++) {
    mine_->values[group.out[i]].index = call;
    mine_->values[group.out[i]].result = i;
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
    Changed(n);
    for (ValueId v : mine_->nodes[n].in)
      if (v != kNoValue) uses_[v]--, stale_[v] = 1;
  }
  return call;
}

// Names of a body's values come back where they are free, else after the call. In a plan, where failures are
// told by them, a node is called as it would be without the pass.
std::string Rewrite::NameFor(const Graph& body, ValueId value, NodeId call) const {
  const Value& v = body.values[value];
  const std::string& name = v.name;
  if (from_.plan && !outlined_.contains(call) && v.result == 0) {
    bool typed = IsTypedByGraph(*graph_->nodes[call].op);
    return FreshName(
        absl::StrCat(typed ? graph_->NodeName(call) : body.name, "/",
                     typed && name.empty() ? OpName(*body.nodes[v.index].op) : body.ValueName(value)));
  }
  if (name.empty()) return "";
  if (!mine_->by_name.contains(name)) return name;
  return FreshName(absl::StrCat(graph_->NodeName(call), "/", name));
}

absl::Status Rewrite::Inline(NodeId call) {
  if (!Alive(call)) return NotFound("node ", call, " does not exist (any more)");
  if (!IsTypedByGraph(*graph_->nodes[call].op))
    return Invalid("node ", call, " (", OpName(*graph_->nodes[call].op), ") is not a call");
  const Node& node = graph_->nodes[call];
  if (!outlined_.contains(call)) RETURN_IF_ERROR(CheckAllowed());
  RETURN_IF_ERROR(WriteOut(call, BodiesOf(node.attrs)[0], node.in));
  outlined_.erase(call) ? edits_-- : edits_++;  // an outlining that is undone counts for nothing
  return absl::OkStatus();
}

absl::Status Rewrite::Splice(NodeId n, int64_t graph, std::span<const ValueId> in) {
  if (!Alive(n)) return NotFound("node ", n, " does not exist (any more)");
  const Node& node = graph_->nodes[n];
  if (MustRun(*graph_, node)) return Invalid("node ", n, " (", OpName(*node.op), ") must run as it is");
  std::vector<uint32_t> bodies = BodiesOf(node.attrs);
  if (std::find(bodies.begin(), bodies.end(), graph) == bodies.end())
    return Invalid("node ", n, " (", OpName(*node.op), ") does not run graph ", graph);
  ASSIGN_OR_RETURN(GraphTypes types, edit_.module->BodyTypes(graph));
  auto fit = [&](std::span<const ValueId> values, const std::vector<TensorType>& wanted) {
    return std::ranges::equal(values, wanted, [&](ValueId v, const TensorType& type) {
      return v < graph_->values.size() && graph_->values[v].type == type;
    });
  };
  if (!fit(in, types.params) || !fit(node.out, types.results))
    return Invalid("graph \"", types.name, "\" does not fit what it is given, or the results of node ", n);
  for (ValueId v : in) RETURN_IF_ERROR(CheckUse(v, n));
  for (const auto& [constant, value] : edit_.module->graphs[static_cast<size_t>(graph)]->constant_values)
    if (!graph_->constant_values.contains(constant) &&
        graph_->by_name.contains(edit_.module->constants[constant].name))
      return Invalid("there is a value \"", edit_.module->constants[constant].name, "\" already");
  RETURN_IF_ERROR(CheckAllowed());
  RETURN_IF_ERROR(WriteOut(n, static_cast<uint32_t>(graph), {in.begin(), in.end()}));
  edits_++;
  return absl::OkStatus();
}

absl::Status Rewrite::WriteOut(NodeId call, uint32_t graph, std::vector<ValueId> in) {
  Own();
  const Graph& body = *own_->graphs[graph];
  std::vector<ValueId> map(body.values.size(), kNoValue), out = mine_->nodes[call].out;
  for (size_t i = 0; i < in.size(); i++) map[body.params[i]] = in[i];
  for (const auto& [constant, value] : body.constant_values) {
    ASSIGN_OR_RETURN(map[value], mine_->AddConstant(constant));
  }
  Grow();
  // The names of values that are outlined now and were named before are free again.
  for (const Node& inner : body.nodes)
    for (ValueId v : inner.out)
      if (auto known = mine_->by_name.find(body.values[v].name); known != mine_->by_name.end()) {
        const Value& holder = mine_->values[known->second];
        if (holder.kind == ValueKind::kResult && !Alive(holder.index)) mine_->by_name.erase(known);
      }
  mine_->scope = mine_->nodes[call].origin;
  for (const Node& inner : body.nodes) {
    std::vector<ValueId> operands;
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (ValueId v : inner.in) operands.push_back(v == kNoValue ? kNoValue : map[v]);
    for (size_t i = 0; i < inner.out.size(); i++) {
      names.push_back(NameFor(body, inner.out[i], call));
      types.push_back(body.values[inner.out[i]].type);
    }
    if (inner.origin.source) mine_->scope.source = inner.origin.source;
    if (!inner.name.empty())
      names.push_back(FreshName(absl::StrCat(graph_->NodeName(call), "/", inner.name)));
    ASSIGN_OR_RETURN(NodeId made, mine_->AddNode(inner.op, std::move(operands), inner.attrs, names, types));
    for (size_t i = 0; i < inner.out.size(); i++) map[inner.out[i]] = mine_->nodes[made].out[i];
    Insert(made, call);
    kept_[made] = kept_[call] && MustRun(*mine_, mine_->nodes[made]);
    if (marked_) Mark(made, true);
  }
  // Replacing names the results as the call's were, where they are fetched; other names are the call's too.
  for (size_t i = 0; i < out.size(); i++) {
    ValueId value = map[body.results[i]];
    bool told = from_.plan && call < from_.graph->nodes.size();
    std::string name = told ? mine_->ValueName(out[i]) : mine_->values[out[i]].name;
    bool root = rooted_[out[i]];
    RETURN_IF_ERROR(Exchange(out[i], value));
    if (!root && !name.empty() && mine_->values[value].kind == ValueKind::kResult && !rooted_[value]) {
      mine_->values[out[i]].name.clear();
      mine_->values[value].name = name;
      mine_->by_name[name] = value;
    }
  }
  if (marked_) Mark(call, false);
  kept_[call] = 0;
  Kill(call);
  return absl::OkStatus();
}

}  // namespace keel
