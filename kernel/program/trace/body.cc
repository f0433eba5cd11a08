// body.cc: bodies of control nodes as nested traces; see trace.h.
//
// How to read it: Begin opens a body; until Leave all nodes are added to it, even if their operands belong to
// an outer trace. Outer values become parameters, constants stay constants, so that passes can see them; a
// gradient with respect to a constant makes it an operand first (grad/lift.h). Control gives all bodies of a
// node the same parameters, including the captures of each, moves reads of variables that no body writes
// before the node, where gradients reach them, and adds the node. Nodes that a body added while an outer tape
// was paused are followed by stop_gradient. Cases that gradients cannot reach are errors: a read of a
// variable that the body also writes, and a gradient inside a body with respect to a value that the tape
// watched before.
#include <algorithm>

#include "kernel/language/graph/copier.h"
#include "kernel/language/graph/graph_sink.h"
#include "kernel/program/trace/tape.h"

namespace keel {
namespace {

// The attributes that hold the bodies of a control op, in order; list: one attribute holds all bodies.
struct BodyAttrs {
  std::string_view op;
  const char* names[2];
  bool list, loop;
};
constexpr BodyAttrs kBodyAttrs[] = {{"cond", {"then", "else"}, false, false},
                                    {"switch", {"branches"}, true, false},
                                    {"while", {"test", "body"}, false, true},
                                    {"scan", {"body"}, false, true}};

class UnnamedCopy : public GraphCopier {
  using GraphCopier::GraphCopier;
  absl::Status Adapt(NodeId, Draft* draft) override {
    draft->names.clear();
    return absl::OkStatus();
  }
};

}  // namespace

Trace* Trace::Current() {
  Trace* at = this;
  while (at->parent_) at = at->parent_.get();
  while (Trace* inner = at->open_body_) at = inner;
  return at;
}

absl::StatusOr<std::shared_ptr<Trace>> Trace::Begin(const BodyRequest& request, Results* params) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("begin a body"));
  auto graph = std::make_unique<Graph>();
  graph->module = module_.get();
  graph->name = absl::StrCat(graph_->name, ".v", graph_->nodes.size(), ".", request.label);
  auto body = std::make_shared<Trace>(module_, graph.get(), device_);
  body->body_graph_ = std::move(graph);
  body->parent_ = shared_from_this();
  body->mutex_ = mutex_;
  body->is_branch_ = request.branch;
  body->allows_variables_ = allows_variables_;
  body->entries_from_ = request.entries_from;
  for (size_t i = 0; i < request.like.size(); i++) {
    ASSIGN_OR_RETURN(ValueId value, ValueFor(request.like[i]));
    TensorType type = graph_->values[value].type;
    if (i >= request.entries_from) {
      if (type.dims.empty())
        return Invalid("operand ", i, " of a scan is a scalar: it has no dim to scan over");
      type.dims.erase(type.dims.begin());
    }
    ASSIGN_OR_RETURN(params->emplace_back(), body->Param("", std::move(type)));
  }
  open_body_ = body.get();
  return body;
}

void Trace::Leave() {
  if (parent_ && parent_->open_body_ == this) parent_->open_body_ = nullptr;
}

void Trace::Hide(NodeId from, NodeId to) {
  std::lock_guard lock(*mutex_);
  hidden_.resize(graph_->nodes.size());
  for (; from < to && from < hidden_.size(); from++) hidden_[from] = true;
}

absl::Status Trace::Finish(std::span<const ArrayRef> results) {
  Leave();
  for (const ArrayRef& array : results) RETURN_IF_ERROR(Result("", array.get()));
  return End();
}

absl::Status Trace::CheckControl(const ControlRequest& request) {
  const BodyAttrs* kind = std::ranges::find(kBodyAttrs, request.op, &BodyAttrs::op);
  if (kind == std::end(kBodyAttrs))
    return NotFound("\"", request.op, "\" has no bodies; use cond, switch, while or scan");
  size_t n = kind->list ? std::max<size_t>(request.bodies.size(), 1) : kind->names[1] ? 2 : 1;
  if (request.bodies.size() != n)
    return Invalid("a ", request.op, " has ", n, n > 1 ? " bodies" : " body", ", got ",
                   request.bodies.size());
  for (const Trace* body : request.bodies) {
    if (!body || !body->parent_)
      return Invalid("an operand of ", request.op, " is not a body: begin a body first");
    if (!body->is_open_)
      return Invalid("the body \"", body->graph_->name, "\" already belongs to another node");
    if (body->parent_ != request.bodies[0]->parent_)
      return Annotate(Invalid("the body \"", body->graph_->name, "\" of a ", request.op, " is part of \"",
                              body->parent_->graph_->name, "\", the first body of \"",
                              request.bodies[0]->parent_->graph_->name, "\""),
                      kErrorHint, "end each body before the next one begins");
  }
  return absl::OkStatus();
}

std::string Trace::BodyLabel(std::string_view op, size_t body) {
  const BodyAttrs& kind = *std::ranges::find(kBodyAttrs, op, &BodyAttrs::op);
  return kind.list ? absl::StrCat(kind.names[0], body) : kind.names[body];
}

// Values of outer traces become parameters, constants stay constants.
absl::StatusOr<ValueId> Trace::FromParent(keel_array* array) {
  if (auto it = captured_.find(array); it != captured_.end()) return it->second;
  ASSIGN_OR_RETURN(ValueId outer, parent_->ValueFor(array));
  const Value& value = parent_->graph_->values[outer];
  if (value.kind != ValueKind::kConstant) return Captured(outer);
  ASSIGN_OR_RETURN(ValueId mine, graph_->AddConstant(value.index));
  if (array->symbolic()) return mine;
  links_.push_back({mine, nullptr, ArrayRef::Share(array)});
  return captured_[array] = mine;
}

absl::StatusOr<ValueId> Trace::Captured(ValueId outer) {
  for (const auto& [value, param] : captures_)
    if (value == outer) return param;
  ASSIGN_OR_RETURN(ValueId param, graph_->AddParam("", parent_->graph_->values[outer].type));
  captures_.emplace_back(outer, param);
  return param;
}

// Copies the body into the module. Parameters: those from Begin, with the captures of all bodies of the node
// before the entries. Reads that LiftReads moved out are omitted; their values are captures.
absl::Status Trace::Rewrite(const std::vector<ValueId>& captured, std::string_view label, AttrValue* number) {
  std::vector<ValueId> own;
  number->i = static_cast<int64_t>(module_->graphs.size());
  ASSIGN_OR_RETURN(Graph * made,
                   module_->AddFreshGraph(
                       absl::StrCat(parent_->graph_->name, ".v", parent_->graph_->nodes.size(), ".", label)));
  for (ValueId p : graph_->params)
    if (std::ranges::find(captures_, p, &Capturing::second) == captures_.end()) own.push_back(p);
  UnnamedCopy copy(*graph_, *made);
  auto begun = [&](size_t from, size_t to) -> absl::Status {
    for (size_t i = from; i < to; i++) RETURN_IF_ERROR(copy.AddParam(own[i]));
    return absl::OkStatus();
  };
  size_t entries = std::min(entries_from_, own.size());
  RETURN_IF_ERROR(begun(0, entries));
  for (ValueId outer : captured) {
    ASSIGN_OR_RETURN(ValueId param, made->AddParam("", parent_->graph_->values[outer].type));
    for (const auto& [value, mine] : captures_)
      if (value == outer) copy.map[mine] = param;
  }
  RETURN_IF_ERROR(begun(entries, own.size()));
  ASSIGN_OR_RETURN(const OpDef* stop, module_->catalogue->Find("stop_gradient", 0));
  hidden_.resize(graph_->nodes.size());
  for (NodeId n = 0; n < graph_->nodes.size(); n++) {
    const Node& node = graph_->nodes[n];
    if (!node.out.empty() && copy.map[node.out[0]] != kNoValue) continue;  // a read that was lifted
    RETURN_IF_ERROR(copy.CopyNode(n));
    if (!hidden_[n]) continue;
    for (ValueId v : node.out) {
      ASSIGN_OR_RETURN(NodeId stopped, made->AddNode(stop, {copy.map[v]}, {}));
      copy.map[v] = made->nodes[stopped].out[0];
    }
  }
  return copy.AddResults(graph_->results);
}

// Moves reads of variables that no body writes before the node. Gradients do not reach the other reads.
absl::Status Trace::LiftReads(const ControlRequest& request) {
  auto lose = [&](const std::shared_ptr<Variable>& variable) {
    links_.push_back({kNoValue, variable, {}});
    if (request.tape) request.tape->RecordUnreachableRead(variable);
  };
  for (Trace* body : request.bodies) {
    for (const Node& node : body->graph_->nodes) {
      if (EffectOf(*node.op) != EffectKind::kRead) continue;
      auto number = static_cast<uint32_t>(node.attrs[0].value.i);
      const std::shared_ptr<Variable>& variable = module_->variables[number].storage;
      if (std::ranges::any_of(request.bodies, [&](Trace* b) { return b->written_.contains(number); })) {
        lose(variable);
        continue;
      }
      ASSIGN_OR_RETURN(ArrayRef outer, Read(variable));
      body->captures_.emplace_back(ValueOf(outer.get()), node.out[0]);
    }
    for (const TraceLink& link : body->links_)
      if (link.variable && link.value == kNoValue) lose(link.variable);
  }
  return absl::OkStatus();
}

absl::Status Trace::RewriteAll(const ControlRequest& request, const std::vector<ValueId>& captured,
                               Attrs* attrs) {
  const BodyAttrs& kind = *std::ranges::find(kBodyAttrs, request.op, &BodyAttrs::op);
  AttrValue all;
  all.kind = KEEL_ATTR_GRAPHS;
  for (size_t b = 0; b < request.bodies.size(); b++) {
    AttrValue one;
    one.kind = KEEL_ATTR_GRAPH;
    RETURN_IF_ERROR(request.bodies[b]->Rewrite(captured, BodyLabel(request.op, b), &one));
    if (kind.list)
      all.list.push_back(one.i);
    else
      attrs->push_back({kind.names[b], one});
  }
  if (kind.list) attrs->push_back({kind.names[0], all});
  auto count = [&](const char* name, size_t n) {
    attrs->push_back(MakeAttrs({{name, KEEL_ATTR_I64, static_cast<int64_t>(n)}})[0]);
  };
  if (kind.loop) count("carry", request.before.size());
  if (request.op == "scan") count("invariants", captured.size());
  SortAttrs(attrs);
  return absl::OkStatus();
}

absl::StatusOr<Results> Trace::AddControl(const ControlRequest& request) {
  std::vector<ValueId> captured;
  ASSIGN_OR_RETURN(std::vector<ValueId> in, ValuesFor(request.before));
  RETURN_IF_ERROR(LiftReads(request));
  for (Trace* body : request.bodies)
    for (const auto& [value, param] : body->captures_)
      if (std::ranges::find(captured, value) == captured.end()) captured.push_back(value);
  for (const TraceLink& link : links_)
    if (link.variable && request.tape && std::ranges::find(captured, link.value) != captured.end()) {
      ASSIGN_OR_RETURN(ArrayRef value, Symbol(link.value));
      request.tape->RecordRead(link.variable, value.get());
    }
  Attrs attrs = request.attrs;
  RETURN_IF_ERROR(RewriteAll(request, captured, &attrs));
  in.insert(in.end(), captured.begin(), captured.end());
  ASSIGN_OR_RETURN(std::vector<ValueId> entries, ValuesFor(request.entries));
  in.insert(in.end(), entries.begin(), entries.end());
  ASSIGN_OR_RETURN(std::vector<ValueId> results, Add(request.op, std::move(in), attrs));
  return Symbols(results);
}

absl::StatusOr<Results> Trace::Control(const ControlRequest& request) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen(absl::StrCat("add a ", request.op)));
  if (const Trace* inner = open_body_)
    return Invalid("the body \"", inner->graph_->name, "\" has not ended: a ", request.op,
                   " cannot be added before it");
  size_t graphs = module_->graphs.size();
  absl::StatusOr<Results> results = AddControl(request);
  if (!results.ok()) module_->DropGraphs(graphs);
  return results;
}

}  // namespace keel
