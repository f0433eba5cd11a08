// body.cc: bodies of control nodes while they are written: traces within traces; see trace.h.
//
// How to read it: Begin opens a body, into which everything is written that its parent's symbols meet until
// Leave. Control gives finished bodies the same parameters, those for what any of them captured included, and
// adds the node.
#include <algorithm>

#include "kernel/trace/trace.h"

namespace keel {
namespace {

// Attributes of a control op that name its bodies, in order; a list takes them all.
struct BodyAttrs {
  std::string_view op;
  const char* names[2];
  bool list, loop;
};
constexpr BodyAttrs kBodyAttrs[] = {{"cond", {"then", "else"}, false, false},
                                    {"switch", {"branches"}, true, false},
                                    {"while", {"test", "body"}, false, true},
                                    {"scan", {"body"}, false, true}};

AttrValue Number(int32_t kind, int64_t i) {
  AttrValue v;
  v.kind = kind;
  v.i = i;
  return v;
}

}  // namespace

Trace* Trace::Current() {
  Trace* at = this;
  while (at->parent_) at = at->parent_.get();
  while (at->inner_) at = at->inner_;
  return at;
}

absl::StatusOr<std::shared_ptr<Trace>> Trace::Begin(const BodyWanted& wanted, std::vector<ArrayRef>* params) {
  std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(CheckOpen("begin a body"));
  std::string name = absl::StrCat(graph_->name, ".", wanted.label), own = name;
  for (int k = 1; module_->GraphNumber(own).ok(); k++) own = absl::StrCat(name, k);
  ASSIGN_OR_RETURN(Graph * graph, module_->AddGraph(own));
  auto body = std::make_shared<Trace>(module_, graph, device_);
  body->parent_ = shared_from_this();
  body->branch_ = wanted.branch;
  body->variables_ = variables_;
  body->entries_from_ = wanted.entries_from;
  for (size_t i = 0; i < wanted.like.size(); i++) {
    ASSIGN_OR_RETURN(ValueId value, ValueFor(wanted.like[i]));
    TensorType type = graph_->values[value].type;
    if (i >= wanted.entries_from) {
      if (type.dims.empty())
        return Invalid("operand ", i, " of a scan is a scalar: it has no dim to go over");
      type.dims.erase(type.dims.begin());
    }
    ASSIGN_OR_RETURN(params->emplace_back(), body->Param("", std::move(type)));
  }
  inner_ = body.get();
  return body;
}

void Trace::Leave() {
  if (parent_ && parent_->inner_ == this) parent_->inner_ = nullptr;
}

absl::Status Trace::Finish(std::span<keel_array* const> results) {
  Leave();
  for (keel_array* array : results) RETURN_IF_ERROR(Result("", array));
  return End();
}

absl::Status Trace::CheckControl(const ControlWanted& wanted) {
  const BodyAttrs* kind = std::ranges::find(kBodyAttrs, wanted.op, &BodyAttrs::op);
  if (kind == std::end(kBodyAttrs))
    return NotFound("\"", wanted.op, "\" runs no bodies; there are cond, switch, while, scan");
  size_t n = kind->names[1] ? 2 : 1;
  if (!kind->list && wanted.bodies.size() != n)
    return Invalid("a ", wanted.op, " has ", n, " bodies, got ", wanted.bodies.size());
  for (const Trace* body : wanted.bodies)
    if (!body || !body->parent_)
      return Invalid("what a ", wanted.op, " is given is no body: see keel_body_begin");
  return absl::OkStatus();
}

// What belongs to traces around becomes a parameter, constants stay constants.
absl::StatusOr<ValueId> Trace::FromParent(keel_array* array) {
  ASSIGN_OR_RETURN(ValueId outer, parent_->ValueFor(array));
  const Value& value = parent_->graph_->values[outer];
  if (value.kind == ValueKind::kConstant) return graph_->AddConstant(value.index);
  return Captured(outer);
}

absl::StatusOr<ValueId> Trace::Captured(ValueId outer) {
  for (const auto& [value, param] : captures_)
    if (value == outer) return param;
  ASSIGN_OR_RETURN(ValueId param, graph_->AddParam("", parent_->graph_->values[outer].type));
  captures_.emplace_back(outer, param);
  return param;
}

// Written anew: the parameters that the body began with, around those for all that any of them captured, and
// without reads that were lifted, whose values are captured too.
absl::Status Trace::Rewrite(const std::vector<ValueId>& captured) {
  ASSIGN_OR_RETURN(uint32_t number, module_->GraphNumber(graph_->name));
  auto made = std::make_unique<Graph>();
  made->module = module_.get();
  made->name = graph_->name;
  std::vector<ValueId> map(graph_->values.size(), kNoValue), own;
  for (ValueId p : graph_->params)
    if (std::ranges::find(captures_, p, &Capturing::second) == captures_.end()) own.push_back(p);
  auto begun = [&](size_t from, size_t to) -> absl::Status {
    for (size_t i = from; i < to; i++) {
      ASSIGN_OR_RETURN(map[own[i]], made->AddParam("", graph_->values[own[i]].type));
    }
    return absl::OkStatus();
  };
  size_t entries = std::min(entries_from_, own.size());
  RETURN_IF_ERROR(begun(0, entries));
  for (ValueId outer : captured) {
    ASSIGN_OR_RETURN(ValueId param, made->AddParam("", parent_->graph_->values[outer].type));
    for (const auto& [value, mine] : captures_)
      if (value == outer) map[mine] = param;
  }
  RETURN_IF_ERROR(begun(entries, own.size()));
  for (ValueId v = 0; v < map.size(); v++) {
    if (graph_->values[v].kind != ValueKind::kConstant) continue;
    ASSIGN_OR_RETURN(map[v], made->AddConstant(graph_->values[v].index));
  }
  for (const Node& node : graph_->nodes) {
    if (!node.out.empty() && map[node.out[0]] != kNoValue) continue;  // a read that was lifted
    std::vector<ValueId> in;
    for (ValueId v : node.in) in.push_back(v == kNoValue ? v : map[v]);
    made->scope = node.device;
    ASSIGN_OR_RETURN(NodeId copy, made->AddNode(node.op, std::move(in), node.attrs));
    for (size_t r = 0; r < node.out.size(); r++) map[node.out[r]] = made->nodes[copy].out[r];
  }
  for (ValueId v : graph_->results) RETURN_IF_ERROR(made->AddResult("", map[v]));
  graph_ = made.get();
  module_->ExchangeGraph(number, std::move(made));
  return absl::OkStatus();
}

// What bodies read and none of them writes is read once, before the node. Gradients do not find other reads.
absl::Status Trace::LiftReads(const ControlWanted& wanted) {
  auto lose = [&](const std::shared_ptr<Variable>& variable) {
    links_.push_back({kNoValue, variable, {}});
    if (wanted.saw) wanted.saw(variable, nullptr);
  };
  for (Trace* body : wanted.bodies) {
    for (const Node& node : body->graph_->nodes) {
      if (EffectOf(*node.op) != EffectKind::kRead) continue;
      auto number = static_cast<uint32_t>(node.attrs[0].value.i);
      const std::shared_ptr<Variable>& variable = module_->variables[number].storage;
      if (std::ranges::any_of(wanted.bodies, [&](Trace* b) { return b->written_.contains(number); })) {
        lose(variable);
        continue;
      }
      ASSIGN_OR_RETURN(ArrayRef outer, Read(variable));
      body->captures_.emplace_back(ValueOf(outer.get()), node.out[0]);
    }
    for (TraceLink& link : body->links_)
      if (link.value == kNoValue) lose(link.variable);
  }
  return absl::OkStatus();
}

absl::Status Trace::Control(const ControlWanted& wanted, std::vector<ArrayRef>* results) {
  std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(CheckOpen(absl::StrCat("add a ", wanted.op)));
  const BodyAttrs& kind = *std::ranges::find(kBodyAttrs, wanted.op, &BodyAttrs::op);
  std::vector<ValueId> captured, in;
  for (Trace* body : wanted.bodies)
    if (body->parent_.get() != this || body->open_ || body->graph_->called)
      return Invalid("the body \"", body->graph_->name, "\" of a ", wanted.op, " in \"", graph_->name,
                     body->open_ ? "\" is not finished" : "\" is that of another node");
  RETURN_IF_ERROR(LiftReads(wanted));
  for (Trace* body : wanted.bodies)
    for (const auto& [value, param] : body->captures_)
      if (std::ranges::find(captured, value) == captured.end()) captured.push_back(value);
  for (const TraceLink& link : links_)
    if (link.variable && wanted.saw && std::ranges::find(captured, link.value) != captured.end()) {
      ASSIGN_OR_RETURN(ArrayRef value, Symbol(link.value));
      wanted.saw(link.variable, value.get());
    }
  Attrs attrs = wanted.attrs;
  AttrValue all;
  all.kind = KEEL_ATTR_GRAPHS;
  for (size_t b = 0; b < wanted.bodies.size(); b++) {
    RETURN_IF_ERROR(wanted.bodies[b]->Rewrite(captured));
    ASSIGN_OR_RETURN(uint32_t number, module_->GraphNumber(wanted.bodies[b]->graph_->name));
    if (kind.list)
      all.list.push_back(number);
    else
      attrs.push_back({kind.names[b], Number(KEEL_ATTR_GRAPH, number)});
  }
  if (kind.list) attrs.push_back({kind.names[0], all});
  if (kind.loop)
    attrs.push_back({"carry", Number(KEEL_ATTR_I64, static_cast<int64_t>(wanted.before.size()))});
  if (wanted.op == "scan")
    attrs.push_back({"invariants", Number(KEEL_ATTR_I64, static_cast<int64_t>(captured.size()))});
  std::ranges::sort(attrs, {}, &Attr::name);
  auto add = [&](std::span<keel_array* const> arrays) -> absl::Status {
    for (keel_array* array : arrays) {
      ASSIGN_OR_RETURN(in.emplace_back(), ValueFor(array));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add(wanted.before));
  in.insert(in.end(), captured.begin(), captured.end());
  RETURN_IF_ERROR(add(wanted.entries));
  ASSIGN_OR_RETURN(const OpDef* op, module_->catalogue->Find(wanted.op, 0));
  graph_->scope = 0;
  ASSIGN_OR_RETURN(NodeId node, Add(*op, std::move(in), attrs));
  for (ValueId value : graph_->nodes[node].out) {
    ASSIGN_OR_RETURN(results->emplace_back(), Symbol(value));
  }
  return absl::OkStatus();
}

}  // namespace keel
