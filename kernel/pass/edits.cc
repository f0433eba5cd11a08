// edits.cc: adding, replacing and evaluating nodes in a pass. Each checks first and edits then.
#include <algorithm>

#include "kernel/base/free_name.h"
#include "kernel/pass/rewrite.h"

namespace keel {
namespace {

constexpr uint64_t kMaxEvaluated = uint64_t{2} << 30;  // bytes of constants that one pass may make

absl::Status Precondition(std::string_view text) {
  return Error(absl::StatusCode::kFailedPrecondition, text);
}

}  // namespace

// A name that neither a value of the graph nor a constant of the module has.
std::string Rewrite::FreshName(std::string_view wanted) const {
  auto taken = [&](std::string_view name) {
    return mine_->by_name.contains(name) || mine_->nodes_by_name.contains(name) ||
           own_->FindConstant(name).ok();
  };
  return FreeName(wanted, taken);
}

void Rewrite::Changed(NodeId n) {
  if (n < views_.size()) views_[n].reset();
}

NodeId Rewrite::Insert(NodeId n, NodeId before) {
  Grow();
  alive_[n] = 1;
  Link(n, before);
  for (ValueId v : mine_->nodes[n].in)
    if (v != kNoValue) users_[v].push_back(n), uses_[v]++;
  return n;
}

void Rewrite::Kill(NodeId start) {
  std::vector<NodeId> stack{start};
  while (!stack.empty()) {
    NodeId n = stack.back();
    stack.pop_back();
    const Node& node = mine_->nodes[n];
    if (!alive_[n] || kept_[n]) continue;
    if (std::any_of(node.out.begin(), node.out.end(),
                    [&](ValueId v) { return !fed_[v] && (uses_[v] || rooted_[v]); }))
      continue;
    alive_[n] = 0;
    if (marked_) Mark(n, false);
    Unlink(n);
    Changed(n);
    for (ValueId v : node.in) {
      if (v == kNoValue) continue;
      stale_[v] = 1;
      if (NodeId producer = Producer(v); --uses_[v] == 0 && producer != kNoValue) stack.push_back(producer);
    }
  }
}

absl::Status Rewrite::AddNode(const keel_node_spec& spec, std::span<ValueId> out) {
  RETURN_IF_ERROR(CheckWrites());
  ASSIGN_OR_RETURN(const OpDef* op, edit_.module->catalogue->Find(spec.op, spec.version));
  if (HasEffect(*op)) return Invalid(spec.op, " has an effect: a pass may not add one");
  for (uint32_t i = 0; i < spec.n_attrs; i++)
    if (spec.attrs[i].kind == KEEL_ATTR_GRAPH && spec.attrs[i].i >= 0 &&
        static_cast<size_t>(spec.attrs[i].i) < edit_.module->graphs.size() &&
        edit_.module->graphs[static_cast<size_t>(spec.attrs[i].i)]->effects.Any())
      return Invalid(spec.op, " would run a graph with effects: a pass may not add one");
  if (before_ != kNoValue && !Alive(before_))
    return Precondition("the node given to edit_before is gone; say anew where to add");
  Own();
  for (uint32_t i = 0; i < spec.n_in; i++)
    if (spec.in[i] != kNoValue) RETURN_IF_ERROR(CheckUse(spec.in[i], before_));
  bool typed = spec.n_in && spec.in[0] != kNoValue;
  if (MayFail(*op, typed ? graph_->values[spec.in[0]].type.dtype : DType::kNone) && AnyKept())
    return Precondition(absl::StrCat(spec.op, " may fail: it is not added where other nodes have effects"));
  std::string name = spec.name && spec.name[0] ? FreshName(spec.name) : "";
  keel_node_spec mine = spec;
  mine.name = name.c_str();
  mine_->scope = before_ == kNoValue ? Origin() : mine_->nodes[before_].origin;
  size_t count = mine_->nodes.size();
  absl::Status built = BuildNode(*mine_, mine, out);
  if (mine_->nodes.size() == count) return built;
  Grow();
  if (!built.ok()) return built;  // the wrong number of results: it stays outside
  Insert(static_cast<NodeId>(count), before_);
  return absl::OkStatus();
}

absl::Status Rewrite::CheckWrites() const {
  return reads_ ? Precondition("a graph that a node runs is only read; edit_graph makes another one")
                : absl::OkStatus();
}

absl::StatusOr<ValueId> Rewrite::AddConstant(Constant constant) {
  RETURN_IF_ERROR(CheckWrites());
  Own();
  if (!constant.name.empty() || !constant.type.dims.empty())
    constant.name = FreshName(constant.name.empty() ? "c" : constant.name);
  ASSIGN_OR_RETURN(uint32_t number, own_->AddConstant(std::move(constant)));
  ASSIGN_OR_RETURN(ValueId value, mine_->AddConstant(number));
  Grow();
  return value;
}

// A root goes by its name. The new value takes the old one's if it can have another name; in a plan one that
// was there before keeps its own, by which a failure is told.
void Rewrite::TakeName(ValueId from, ValueId to) {
  std::string name = from_.plan ? KnownName(*graph_, from) : graph_->values[from].name;
  Value& target = mine_->values[to];
  bool renames = target.kind == ValueKind::kResult && !fed_[to] && !rooted_[to];
  if (renames && !(from_.plan && target.index < from_.graph->nodes.size())) {
    target.name = name;
    mine_->by_name[name] = to;
    mine_->values[from].name.clear();
    return;
  }
  for (size_t i = 0; i < roots_.size(); i++)
    if (roots_[i] == from && result_names_[i].empty()) result_names_[i] = name;
}

bool Rewrite::IsNew(ValueId v) const {
  const Value& value = graph_->values[v];
  return value.kind == ValueKind::kResult && value.index >= from_.graph->nodes.size();
}

absl::Status Rewrite::CheckAllowed() {
  RETURN_IF_ERROR(CheckWrites());
  stopped_ = edits_ >= allowed_;
  return stopped_ ? Precondition("no more edits are allowed") : absl::OkStatus();
}

absl::Status Rewrite::Replace(ValueId old_value, ValueId new_value) {
  RETURN_IF_ERROR(CheckAllowed());
  RETURN_IF_ERROR(Exchange(old_value, new_value));
  if (old_value != new_value) edits_++;
  return absl::OkStatus();
}

absl::Status Rewrite::Exchange(ValueId old_value, ValueId new_value) {
  RETURN_IF_ERROR(CheckValue(old_value));
  RETURN_IF_ERROR(CheckValue(new_value));
  if (old_value == new_value) return absl::OkStatus();
  const TensorType &was = graph_->values[old_value].type, &is = graph_->values[new_value].type;
  if (!(was == is))
    return Invalid("\"", graph_->ValueName(old_value), "\" is ", Print(was, edit_.module->dims),
                   " and cannot be replaced by \"", graph_->ValueName(new_value), "\", which is ",
                   Print(is, edit_.module->dims));
  RETURN_IF_ERROR(CheckOrder(old_value, new_value));
  for (NodeId user : Users(old_value)) RETURN_IF_ERROR(CheckUse(new_value, user));
  Own();
  if (rooted_[old_value]) {
    TakeName(old_value, new_value);
    for (ValueId& root : roots_)
      if (root == old_value) root = new_value;
    rooted_[old_value] = 0;
    rooted_[new_value] = 1;
  } else if (IsNew(new_value) && mine_->values[new_value].name.empty() && !IsNew(old_value)) {
    TakeName(old_value, new_value);
  }
  std::span<const NodeId> moved = Users(old_value);
  for (NodeId user : moved) {
    std::vector<ValueId>& in = mine_->nodes[user].in;
    std::replace(in.begin(), in.end(), old_value, new_value);
    Changed(user);
  }
  users_[new_value].insert(users_[new_value].end(), moved.begin(), moved.end());
  uses_[new_value] += static_cast<uint32_t>(moved.size());
  users_[old_value].clear();
  uses_[old_value] = 0;
  if (NodeId producer = Producer(old_value); producer != kNoValue) Kill(producer);
  return absl::OkStatus();
}

absl::Status Rewrite::Eval(NodeId n) {
  if (!Alive(n)) return NotFound("node ", n, " does not exist (any more)");
  const Node& node = graph_->nodes[n];
  if (HasAnyEffect(*graph_, node)) return Precondition("a node with an effect cannot be evaluated");
  if (IsTypedByGraph(*node.op)) return Precondition("a call is not evaluated: inline it first");
  if (IsControl(*node.op)) return Precondition("a node with bodies is not evaluated: it may take for ever");
  for (ValueId v : node.in)
    if (v != kNoValue && (graph_->values[v].kind != ValueKind::kConstant || fed_[v]))
      return Precondition(absl::StrCat("operand \"", graph_->ValueName(v), "\" is not constant"));
  uint64_t bytes = 0;
  for (ValueId v : node.out) {
    const TensorType& type = graph_->values[v].type;
    uint64_t size = SizeOf(type.dtype);
    for (Dim d : type.dims) {
      if (IsSymbolic(d)) return Precondition("its result has dims that are not known yet");
      if (__builtin_mul_overflow(size, static_cast<uint64_t>(d), &size)) size = UINT64_MAX / 2;
    }
    bytes = std::min(bytes + size, kMaxEvaluated + 1);
  }
  if (evaluated_ + bytes > kMaxEvaluated) return Precondition("its results are too large to keep");
  ASSIGN_OR_RETURN(std::vector<Constant> constants, target_.eval(*graph_, n));
  evaluated_ += bytes;
  std::vector<ValueId> out = node.out;
  for (size_t i = 0; i < out.size(); i++) {
    if (!graph_->values[out[i]].name.empty()) constants[i].name = graph_->values[out[i]].name + "_folded";
    ASSIGN_OR_RETURN(ValueId value, AddConstant(std::move(constants[i])));
    RETURN_IF_ERROR(Replace(out[i], value));
  }
  return absl::OkStatus();
}

}  // namespace keel
