// edits.cc: adds, replaces and evaluates nodes in a pass. Each function checks all arguments before it edits.
#include <algorithm>

#include "kernel/base/free_name.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/pass/rewrite.h"

namespace keel {
namespace {

constexpr uint64_t kMaxEvaluated = uint64_t{2} << 30;  // bytes of constants that one pass may create

absl::Status Precondition(std::string_view text) {
  return Error(absl::StatusCode::kFailedPrecondition, text);
}

}  // namespace

// A name used by no value of the graph and no constant of the module.
std::string Rewrite::FreshName(std::string_view wanted) const {
  auto taken = [&](std::string_view name) {
    return copy_->by_name.contains(name) || copy_->nodes_by_name.contains(name) ||
           module_->FindConstant(name).ok();
  };
  return FreeName(wanted, taken);
}

void Rewrite::DropView(NodeId n) {
  if (n < views_.size()) views_[n].reset();
}

NodeId Rewrite::Insert(NodeId n, NodeId before) {
  Grow();
  alive_[n] = 1;
  Link(n, before);
  for (ValueId v : copy_->nodes[n].in)
    if (v != kNoValue) users_[v].push_back(n), uses_[v]++;
  return n;
}

void Rewrite::Kill(NodeId start) {
  std::vector<NodeId> stack{start};
  while (!stack.empty()) {
    NodeId n = stack.back();
    stack.pop_back();
    const Node& node = copy_->nodes[n];
    if (!alive_[n] || kept_[n] || HasNewSize(*node.op)) continue;
    if (std::any_of(node.out.begin(), node.out.end(),
                    [&](ValueId v) { return !fed_[v] && (uses_[v] || rooted_[v]); }))
      continue;
    alive_[n] = 0;
    if (marked_) Mark(n, false);
    Unlink(n);
    DropView(n);
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
  if (HasEffect(*op)) return Invalid(spec.op, " has an effect; a pass must not add effects");
  for (uint32_t i = 0; i < spec.n_attrs; i++)
    if (spec.attrs[i].kind == KEEL_ATTR_GRAPH && spec.attrs[i].i >= 0 &&
        static_cast<size_t>(spec.attrs[i].i) < edit_.module->graphs.size() &&
        edit_.module->graphs[static_cast<size_t>(spec.attrs[i].i)]->effects.Any())
      return Invalid(spec.op, " would call a graph with effects; a pass must not add effects");
  if (before_ != kNoValue && !Alive(before_))
    return Precondition("the node given to edit_before was removed; call edit_before again");
  MakeCopy();
  for (uint32_t i = 0; i < spec.n_in; i++)
    if (spec.in[i] != kNoValue) RETURN_IF_ERROR(CheckUse(spec.in[i], before_));
  bool typed = spec.n_in && spec.in[0] != kNoValue;
  if (MayFail(*op, typed ? graph_->values[spec.in[0]].type.dtype : DType::kNone) && AnyKept())
    return Precondition(absl::StrCat(spec.op, " may fail: it must not be added to a graph with effects"));
  std::string name = spec.name && spec.name[0] ? FreshName(spec.name) : "";
  keel_node_spec mine = spec;
  mine.name = name.c_str();
  copy_->scope = before_ == kNoValue ? Origin() : copy_->nodes[before_].origin;
  size_t count = copy_->nodes.size();
  absl::Status built = BuildNode(*copy_, mine, out);
  if (copy_->nodes.size() == count) return built;
  Grow();
  if (!built.ok()) return built;  // wrong number of results: the node is not linked
  Insert(static_cast<NodeId>(count), before_);
  return absl::OkStatus();
}

absl::Status Rewrite::CheckWrites() const {
  return read_only_ ? Precondition("the body of a node is read-only; edit_graph creates a copy")
                    : absl::OkStatus();
}

absl::Status Rewrite::CheckMayHaveConstants() {
  if (!isolated_) isolated_ = IsBodyOfCall(*edit_.module, graph_->name);
  if (!*isolated_) return absl::OkStatus();
  return Precondition(
      absl::StrCat("graph '", graph_->name, "' is the body of a call, which contains no constants"));
}

absl::StatusOr<ValueId> Rewrite::AddConstant(Constant constant) {
  RETURN_IF_ERROR(CheckWrites());
  RETURN_IF_ERROR(CheckMayHaveConstants());
  MakeCopy();
  if (!constant.name.empty() || !constant.type.dims.empty())
    constant.name = FreshName(constant.name.empty() ? "c" : constant.name);
  ASSIGN_OR_RETURN(ValueId value, copy_->AddConstant(std::move(constant)));
  Grow();
  return value;
}

// Results are identified by name. The new value takes over the old one's name if it can be renamed. In a
// plan, an original value keeps its own name, which error messages use.
void Rewrite::TransferName(ValueId from, ValueId to) {
  std::string name = input_.plan ? KnownName(*graph_, from) : graph_->values[from].name;
  Value& target = copy_->values[to];
  bool renames = target.kind == ValueKind::kResult && !fed_[to] && !rooted_[to];
  if (renames && !(input_.plan && target.index < input_.graph->nodes.size())) {
    target.name = name;
    copy_->by_name[name] = to;
    copy_->values[from].name.clear();
    return;
  }
  for (size_t i = 0; i < roots_.size(); i++)
    if (roots_[i] == from && result_names_[i].empty()) result_names_[i] = name;
}

bool Rewrite::IsNew(ValueId v) const {
  const Value& value = graph_->values[v];
  return value.kind == ValueKind::kResult && value.index >= input_.graph->nodes.size();
}

absl::Status Rewrite::CheckAllowed() {
  RETURN_IF_ERROR(CheckWrites());
  stopped_ = edits_ >= allowed_;
  return stopped_ ? Precondition("no more edits are allowed") : absl::OkStatus();
}

absl::Status Rewrite::Replace(ValueId old_value, ValueId new_value) {
  RETURN_IF_ERROR(CheckAllowed());
  RETURN_IF_ERROR(ReplaceUses(old_value, new_value));
  if (old_value != new_value) edits_++;
  return absl::OkStatus();
}

absl::Status Rewrite::ReplaceUses(ValueId old_value, ValueId new_value) {
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
  MakeCopy();
  if (rooted_[old_value]) {
    TransferName(old_value, new_value);
    for (ValueId& root : roots_)
      if (root == old_value) root = new_value;
    rooted_[old_value] = 0;
    rooted_[new_value] = 1;
  } else if (IsNew(new_value) && copy_->values[new_value].name.empty() && !IsNew(old_value)) {
    TransferName(old_value, new_value);
  }
  std::span<const NodeId> moved = Users(old_value);
  for (NodeId user : moved) {
    std::vector<ValueId>& in = copy_->nodes[user].in;
    std::replace(in.begin(), in.end(), old_value, new_value);
    DropView(user);
  }
  users_[new_value].insert(users_[new_value].end(), moved.begin(), moved.end());
  uses_[new_value] += static_cast<uint32_t>(moved.size());
  users_[old_value].clear();
  uses_[old_value] = 0;
  if (NodeId producer = Producer(old_value); producer != kNoValue) Kill(producer);
  return absl::OkStatus();
}

absl::Status Rewrite::Eval(NodeId n) {
  RETURN_IF_ERROR(CheckWrites());
  RETURN_IF_ERROR(CheckAlive(n));
  const Node& node = graph_->nodes[n];
  if (HasAnyEffect(*graph_, node)) return Precondition("a node with an effect cannot be evaluated");
  if (IsTypedByGraph(*node.op)) return Precondition("a call cannot be evaluated: inline it first");
  if (IsControl(*node.op)) return Precondition("a control op cannot be evaluated: it may not terminate");
  for (ValueId v : node.in)
    if (v != kNoValue && (graph_->values[v].kind != ValueKind::kConstant || fed_[v]))
      return Precondition(absl::StrCat("operand \"", graph_->ValueName(v), "\" is not constant"));
  RETURN_IF_ERROR(CheckMayHaveConstants());
  uint64_t bytes = 0;
  for (ValueId v : node.out) {
    const TensorType& type = graph_->values[v].type;
    uint64_t size = SizeOf(type.dtype);  // at least
    for (Dim d : type.dims) {
      if (IsSymbolic(d)) return Precondition("its result has symbolic dims");
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
