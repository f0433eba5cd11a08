// rewrite.cc: queries of a pass, and the indexes that make them fast: the node order as a linked list with
// ascending labels, and the users of each value.
#include "kernel/runtime/pass/rewrite.h"

#include <algorithm>

#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/plugin/body.h"

namespace keel {
namespace {

constexpr uint64_t kGap = uint64_t{1} << 40;  // between the labels of two nodes

}  // namespace

Rewrite::Rewrite(const PassGraph& from, const PassTarget& target)
    : target_(target),
      input_(from),
      graph_(from.graph),
      roots_(from.roots),
      result_names_(from.result_names) {
  edit_ = {graph_->module, const_cast<Graph*>(graph_), this};
  std::vector<bool> needed = NeededNodes(*graph_, from.feeds, roots_, from.effects);
  alive_.assign(needed.begin(), needed.end());
  kept_.assign(alive_.size(), 0);
  for (NodeId n : from.effects) kept_[n] = 1;
  fed_.assign(graph_->values.size(), 0);
  rooted_.assign(graph_->values.size(), 0);
  for (ValueId v : from.feeds) fed_[v] = 1;
  for (ValueId v : roots_) rooted_[v] = 1;
}

Rewrite::~Rewrite() {
  if (!replaced_) return;
  module_->ExchangeGraph(number_, std::move(replaced_));
  module_->DropGraphs(graphs_);
  module_->DropConstants(constants_);
}

const std::string& Rewrite::DeviceName() {
  static const std::string kNone;
  return target_.device ? target_.device->name() : kNone;
}

std::span<const NodeId> Rewrite::Nodes() {
  if (order_known_) return order_;
  order_.clear();
  if (label_.empty()) {
    for (NodeId n = 0; n < alive_.size(); n++)
      if (alive_[n]) order_.push_back(n);
  } else {
    for (NodeId n = first_; n != kNoValue; n = next_[n]) order_.push_back(n);
  }
  order_known_ = true;
  return order_;
}

NodeId Rewrite::Producer(ValueId v) {
  if (v >= graph_->values.size() || fed_[v] || graph_->values[v].kind != ValueKind::kResult) return kNoValue;
  NodeId n = graph_->values[v].index;
  return Alive(n) ? n : kNoValue;
}

void Rewrite::CountUses() {
  if (!users_.empty()) return;
  users_.resize(graph_->values.size());
  uses_.assign(graph_->values.size(), 0);
  stale_.assign(graph_->values.size(), 0);
  for (NodeId n : Nodes())
    for (ValueId v : graph_->nodes[n].in)
      if (v != kNoValue) users_[v].push_back(n), uses_[v]++;
}

std::span<const NodeId> Rewrite::Users(ValueId v) {
  if (v >= graph_->values.size()) return {};
  CountUses();
  auto& users = users_[v];
  if (stale_[v])
    users.erase(std::remove_if(users.begin(), users.end(), [&](NodeId n) { return !alive_[n]; }),
                users.end());
  stale_[v] = 0;
  return {users.data(), users.size()};
}

uint32_t Rewrite::Uses(ValueId v) {
  if (v >= graph_->values.size()) return 0;
  CountUses();
  return uses_[v];
}

bool Rewrite::Fetched(ValueId v) { return v < rooted_.size() && rooted_[v]; }

absl::StatusOr<Inferred> Rewrite::InferNode(NodeId n) {
  const Node& node = graph_->nodes[n];
  std::vector<Operand> operands = OperandsOf(node.in, [&](ValueId v) { return graph_->values[v].type; });
  GraphTypesOf types = [this](int64_t graph) { return edit_.module->BodyTypes(graph); };
  Inferred inferred;
  VarTypeOf vars = [this](int64_t v) { return edit_.module->VariableType(v); };
  RETURN_IF_ERROR(Infer(*node.op, operands, node.attrs, edit_.module->dims, &inferred, &types, &vars));
  return inferred;
}

keel_node::Side ViewType(const TensorType& type) {
  keel_node::Side out;
  out.dtype = type.dtype;
  for (Dim d : type.dims) out.dims.push_back(IsSymbolic(d) ? -1 : d);
  return out;
}

keel_node::Side ViewValue(const Graph& graph, ValueId v, bool known) {
  if (v == kNoValue) return {};
  const Value& value = graph.values[v];
  keel_node::Side out = ViewType(value.type);
  if (value.kind == ValueKind::kConstant && known) out.data = graph.module->constants[value.index].data;
  return out;
}

// Dims are numbers throughout, as for an impl, or handles in attributes.
absl::StatusOr<keel_node> Rewrite::View(NodeId n, bool numbers) {
  const Node& node = graph_->nodes[n];
  DimMap number = [](Dim d) -> absl::StatusOr<Dim> { return IsSymbolic(d) ? -1 : d; };
  DimMap attr = numbers ? number : DimMap();
  auto side = [&](ValueId v) { return ViewValue(*graph_, v, v != kNoValue && !fed_[v]); };
  keel_node view;
  view.op = node.op;
  view.name = graph_->NodeName(n);
  for (ValueId v : node.in) view.in.push_back(side(v));
  for (ValueId v : node.out) view.out.push_back(side(v));
  ASSIGN_OR_RETURN(Inferred inferred, InferNode(n));
  view.attrs = std::move(inferred.attrs);
  RETURN_IF_ERROR(MapDims(attr, &view.attrs));
  ASSIGN_OR_RETURN(auto body, BodyOf(*edit_.module, *node.op, node.attrs, edit_.module->dims, {}));
  if (body) {
    ASSIGN_OR_RETURN(view.body, ViewBody(*body, number, attr));
  }
  return view;
}

const keel_node* Rewrite::ViewNode(NodeId n) {
  if (!Alive(n)) return nullptr;
  if (views_.size() < alive_.size()) views_.resize(alive_.size());
  if (views_[n]) return views_[n].get();
  views_[n] = std::make_unique<keel_node>();
  views_[n]->op = graph_->nodes[n].op;
  views_[n]->fill = [this, n](keel_node* node) {
    absl::StatusOr<keel_node> full = View(n, false);  // cannot fail, since an existing graph is valid
    if (full.ok()) *node = *std::move(full);
  };
  return views_[n].get();
}

bool Rewrite::Supported(NodeId n) {
  if (!Alive(n) || !target_.device) return false;
  const Node& node = graph_->nodes[n];
  if (Has(*node.op, Trait::kAlias)) return true;  // free
  if (IsControl(*node.op)) return false;          // the kernel runs it
  if (HasAnyEffect(*graph_, node)) return false;  // devices never get nodes with effects
  absl::StatusOr<Inferred> inferred = InferNode(n);
  if (!inferred.ok()) return false;
  auto impl = ChooseImpl(*target_.device, *node.op, *inferred, [&] { return View(n, true); });
  return impl.ok() && *impl;
}

absl::Status Rewrite::Before(NodeId n) {
  if (n != kNoValue) RETURN_IF_ERROR(CheckAlive(n));
  before_ = n;
  return absl::OkStatus();
}

absl::Status Rewrite::CheckAlive(NodeId n) const {
  return Alive(n) ? absl::OkStatus() : NotFound("node ", n, " does not exist or was removed");
}

absl::Status Rewrite::CheckValue(ValueId v) const {
  if (v >= graph_->values.size()) return NotFound("value ", v, " does not exist");
  const Value& value = graph_->values[v];
  if (value.kind != ValueKind::kResult || fed_[v] || Alive(value.index)) return absl::OkStatus();
  return NotFound("value ", v, " (\"", graph_->ValueName(v), "\") was removed with its node");
}

absl::Status Rewrite::CheckUse(ValueId v, NodeId before) {
  RETURN_IF_ERROR(CheckValue(v));
  NodeId producer = Producer(v);
  if (producer == kNoValue || before == kNoValue || Position(producer) < Position(before))
    return absl::OkStatus();
  return Invalid("\"", graph_->ValueName(v), "\" is computed after node ", before, " (",
                 OpName(*graph_->nodes[before].op), "), which would use it");
}

void Rewrite::Mark(NodeId n, bool there) {
  if (!MustRun(*graph_, graph_->nodes[n])) return;
  auto mark = [&](int64_t mark) {
    std::vector<NodeId>& list = marks_[mark];
    auto at = std::lower_bound(list.begin(), list.end(), n,
                               [this](NodeId a, NodeId b) { return Position(a) < Position(b); });
    if (there)
      list.insert(at, n);
    else if (at != list.end() && *at == n)
      list.erase(at);
  };
  Effects effects = EffectsOf(*graph_, graph_->nodes[n]);
  if (kept_[n]) mark(kKeptNodes);
  if (effects.host) mark(kHostCalls);
  for (uint32_t variable : effects.writes) mark(variable);
}

NodeId Rewrite::FirstBetween(int64_t mark, NodeId from, NodeId to) {
  if (!marked_)
    for (NodeId n : Nodes()) Mark(n, true);
  marked_ = true;
  const std::vector<NodeId>& list = marks_[mark];
  auto next = std::upper_bound(list.begin(), list.end(), from,
                               [this](NodeId a, NodeId b) { return Position(a) < Position(b); });
  return next != list.end() && (to == kNoValue || Position(*next) < Position(to)) ? *next : kNoValue;
}

// Whether uses of one value may become uses of another. A read may be replaced by another read of the same
// variable only if no write is between them. Failures must not move across effects.
absl::Status Rewrite::CheckOrder(ValueId old_value, ValueId new_value) {
  NodeId was = Producer(old_value), is = Producer(new_value);
  if (was == kNoValue) return absl::OkStatus();
  const Node& node = graph_->nodes[was];
  auto refuse = [&](std::string_view why) {
    return Invalid("\"", graph_->ValueName(old_value), "\" (", OpName(*node.op), ") cannot be replaced by \"",
                   graph_->ValueName(new_value), "\": ", why);
  };
  bool reads = EffectOf(*node.op) == EffectKind::kRead;
  if (reads && (is == kNoValue || graph_->nodes[is].op != node.op || graph_->nodes[is].attrs != node.attrs))
    return refuse("it is the value of a variable at that point");
  if (!reads && !AnyKept()) return absl::OkStatus();
  Effects own = EffectsOf(*graph_, node);
  if (!reads && !own.fails) return absl::OkStatus();
  if (!reads && (is == kNoValue || Position(is) < Position(was))) return absl::OkStatus();
  NodeId first = Position(is) < Position(was) ? is : was, last = first == is ? was : is;
  std::vector<int64_t> marks(own.reads.begin(), own.reads.end());
  marks.push_back(kHostCalls);
  if (!reads) marks = {kKeptNodes};
  for (int64_t mark : marks)
    if (NodeId n = FirstBetween(mark, first, last); n != kNoValue)
      return refuse(absl::StrCat("node ", n, " (", OpName(*graph_->nodes[n].op), ") is between them"));
  return absl::OkStatus();
}

void Rewrite::MakeCopy() {
  if (copy_) return;
  CountUses();
  number_ = *graph_->module->GraphNumber(graph_->name);
  module_ = input_.owner;
  if (module_) {
    graphs_ = module_->graphs.size();
    constants_ = module_->constants.size();
    replaced_ = module_->ExchangeGraph(number_, std::make_unique<Graph>(*graph_));
  } else {
    module_ = CopyModule(*graph_->module, input_.plan ? (input_.main ? input_.main : graph_) : nullptr);
  }
  copy_ = module_->graphs[number_].get();
  copy_->called = false;
  copy_->limit = 8 * kMaxNodes;
  graph_ = copy_;
  edit_.module = module_.get();
  edit_.graph = copy_;
  next_.assign(alive_.size(), kNoValue);
  prev_.assign(alive_.size(), kNoValue);
  label_.assign(alive_.size(), 0);
  std::vector<NodeId> order(Nodes().begin(), Nodes().end());
  for (NodeId n : order) Link(n, kNoValue);
}

void Rewrite::Grow() {
  alive_.resize(graph_->nodes.size());
  kept_.resize(graph_->nodes.size());
  next_.resize(graph_->nodes.size(), kNoValue);
  prev_.resize(graph_->nodes.size(), kNoValue);
  label_.resize(graph_->nodes.size());
  size_t values = graph_->values.size();
  fed_.resize(values);
  rooted_.resize(values);
  uses_.resize(values);
  stale_.resize(values);
  users_.resize(values);
}

void Rewrite::Link(NodeId n, NodeId before) {
  NodeId previous = before == kNoValue ? last_ : prev_[before];
  next_[n] = before;
  prev_[n] = previous;
  (previous == kNoValue ? first_ : next_[previous]) = n;
  (before == kNoValue ? last_ : prev_[before]) = n;
  order_known_ = false;
  uint64_t low = previous == kNoValue ? 0 : label_[previous];
  if (before == kNoValue) {
    label_[n] = low + kGap;
    return;
  }
  uint64_t gap = label_[before] - low;
  if (gap < 2) return Relabel();
  label_[n] = low + std::min<uint64_t>(gap / 2, uint64_t{1} << 20);
}

void Rewrite::Unlink(NodeId n) {
  (prev_[n] == kNoValue ? first_ : next_[prev_[n]]) = next_[n];
  (next_[n] == kNoValue ? last_ : prev_[next_[n]]) = prev_[n];
  order_known_ = false;
}

void Rewrite::Relabel() {
  uint64_t label = 0;
  for (NodeId n = first_; n != kNoValue; n = next_[n]) label_[n] = label += kGap;
}

}  // namespace keel
