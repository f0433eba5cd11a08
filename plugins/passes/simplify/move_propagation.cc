// move_propagation.cc: see move_propagation.h.
#include "plugins/passes/simplify/move_propagation.h"

#include <algorithm>

#include "plugins/passes/edit/elementwise.h"

namespace keel_passes {
namespace {

constexpr size_t kMostMembers = 64;
constexpr int64_t kMostFolded = 1 << 16;  // size limit of constants that are moved at compile time
constexpr int kNever = 1 << 20;

struct Attribute {
  std::string_view op;
  const char* name;
};
constexpr Attribute kAttributes[] = {{"cast", "to"}, {"gelu", "tanh"}, {"leaky_relu", "alpha"}};

const Attribute* attribute_of(std::string_view op) {
  const auto* found = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                   [&](const Attribute& a) { return a.op == op; });
  return found == std::end(kAttributes) ? nullptr : found;
}

// Elementwise, and with no attributes that rebuilt() would lose.
bool moves_elementwise(const Edit& e, NodeId n) {
  return is_elementwise(e, n) &&
         ((e.traits(n) & KEEL_TRAIT_ATTRIBUTES) == 0 || attribute_of(e.op(n)) != nullptr);
}

bool has_axis(std::string_view op) { return op == "softmax" || op == "log_softmax" || op == "concat"; }

// A sum over several axes would change its order.
bool is_reduction(const Edit& e, NodeId n) {
  const std::string_view op = e.op(n);
  if (op == "reduce_max" || op == "reduce_min") return true;
  return (op == "reduce_sum" || op == "reduce_mean" || op == "reduce_prod") && e.list(n, "axes").size() == 1;
}

}  // namespace

Ints inverse(const Ints& perm) {
  Ints back(perm.size());
  for (size_t i = 0; i < perm.size(); i++) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return back;
}

bool keeps_order(const Dims& dims, const Ints& perm) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (dims[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

MovePropagation::MovePropagation(Edit& e, keel_value root, Move move)
    : e_(e), root_(root), move_(std::move(move)), dims_(e.type(root).dims) {
  reach(root);
  for (const auto& [v, found] : uses_)
    if (members_.count(e_.producer(v)) == 0) leaves_.push_back(v);
}

bool MovePropagation::inside(NodeId n) const {
  if (n == kNone || members_.size() >= kMostMembers) return false;
  const keel_value out = e_.out(n);
  if (e_.type(out).rank() != dims_.size()) return false;
  if (move_.perm.empty()) return moves_elementwise(e_, n) && e_.same(e_.type(out).dims, dims_);
  return moves_elementwise(e_, n) || has_axis(e_.op(n)) || is_reduction(e_, n);  // with the same rank
}

// Called once per use; with the last use the op joins the tree, so nothing is computed twice.
void MovePropagation::reach(keel_value v) {
  uses_[v]++;
  const NodeId n = e_.producer(v);
  if (!all_uses(v) || !inside(n)) return;
  members_.insert(n);
  reduces_ = reduces_ || is_reduction(e_, n);
  for (keel_value in : e_.ins(n)) reach(in);
}

bool MovePropagation::all_uses(keel_value v) const {
  return !e_.fetched(v) && e_.users(v).size() == uses_.at(v);
}

// With leading ones, as for broadcasting.
Dims MovePropagation::full_dims(keel_value v) const {
  Dims dims = e_.type(v).dims;
  if (dims.size() < dims_.size()) dims.insert(dims.begin(), dims_.size() - dims.size(), 1);
  return dims;
}

Ints MovePropagation::after(const Ints& perm) const {
  Ints both = move_.perm;
  for (int64_t& axis : both) axis = perm[static_cast<size_t>(axis)];
  return both;
}

int MovePropagation::cost_of(keel_value leaf) const {
  const Type type = e_.type(leaf);
  if (type.rank() == 0) return 0;
  const bool folds = type.data != nullptr && type.count() <= kMostFolded;
  const int gone = all_uses(leaf) ? -1 : 0;
  if (move_.perm.empty()) {
    if (!e_.same(type.dims, dims_)) return kNever;
    const NodeId reshape = e_.made_by(leaf, "reshape");
    return folds ? 0 : reshape != kNone && e_.same(e_.type(e_.in(reshape, 0)).dims, move_.to) ? gone : 1;
  }
  if (folds || keeps_order(full_dims(leaf), move_.perm)) return 0;
  const NodeId transpose = e_.made_by(leaf, "transpose");
  if (transpose == kNone || type.rank() != dims_.size()) return 1;
  const Ints both = after(e_.list(transpose, "perm"));
  return gone + (std::is_sorted(both.begin(), both.end()) ? 0 : 1);
}

int MovePropagation::cost() const {
  int sum = 0;
  for (keel_value leaf : leaves_) {
    const int cost = cost_of(leaf);
    // the operand of a reduction is larger than its result
    if (cost == kNever || (cost > 0 && reduces_)) return kNever;
    sum += cost;
  }
  return sum;
}

int64_t MovePropagation::axis(int64_t old) const {
  return std::find(move_.perm.begin(), move_.perm.end(), old) - move_.perm.begin();
}

keel_value MovePropagation::moved_leaf(keel_value v) {
  const Type type = e_.type(v);
  if (type.rank() == 0) return v;
  if (move_.perm.empty()) {
    const NodeId reshape = e_.made_by(v, "reshape");
    if (reshape != kNone && e_.same(e_.type(e_.in(reshape, 0)).dims, move_.to)) return e_.in(reshape, 0);
    const keel_value out = e_.add("reshape", {v}, Attrs().dims("to", move_.to));
    if (type.data != nullptr) to_fold_.push_back(out);
    return out;
  }
  const Dims dims = full_dims(v);
  Dims to;
  for (int64_t axis : move_.perm) to.push_back(dims[static_cast<size_t>(axis)]);
  if (keeps_order(dims, move_.perm)) {
    const keel_value out = e_.add("reshape", {v}, Attrs().dims("to", to));
    if (type.data != nullptr) to_fold_.push_back(out);
    return out;
  }
  if (const NodeId t = e_.made_by(v, "transpose"); t != kNone && type.rank() == dims_.size()) {
    const Ints both = after(e_.list(t, "perm"));
    if (std::is_sorted(both.begin(), both.end())) return e_.in(t, 0);
    return e_.add("transpose", {e_.in(t, 0)}, Attrs().ints("perm", both));
  }
  const keel_value full = type.rank() == dims.size() ? v : e_.add("reshape", {v}, Attrs().dims("to", dims));
  const keel_value out = e_.add("transpose", {full}, Attrs().ints("perm", move_.perm));
  if (type.data != nullptr && full != v) to_fold_.push_back(full);
  if (type.data != nullptr) to_fold_.push_back(out);
  return out;
}

keel_value MovePropagation::rebuilt(NodeId n) {
  Ids in = e_.ins(n);
  for (keel_value& v : in) v = moved(v);
  const std::string op(e_.op(n));
  if (has_axis(op)) return e_.add(op, in, Attrs().i("axis", axis(e_.integer(n, "axis"))));
  if (!is_elementwise(e_, n)) {
    Ints axes = e_.list(n, "axes");
    for (int64_t& a : axes) a = axis(a);
    std::sort(axes.begin(), axes.end());
    return e_.add(op, in, Attrs().ints("axes", axes).flag("keep", true));
  }
  if (const Attribute* a = attribute_of(op)) return e_.add(op, in, Attrs().as(a->name, e_.attr(n, a->name)));
  return e_.add(op, in);
}

keel_value MovePropagation::moved(keel_value v) {
  if (v == KEEL_NO_VALUE) return v;
  if (const auto known = done_.find(v); known != done_.end()) return known->second;
  const NodeId n = e_.producer(v);
  const keel_value out = members_.count(n) != 0 ? rebuilt(n) : moved_leaf(v);
  return done_[v] = out;
}

keel_value MovePropagation::done() { return moved(root_); }

void MovePropagation::fold() {
  for (keel_value v : to_fold_)
    if (const NodeId n = e_.producer(v); n != kNone) e_.eval(n);
}

}  // namespace keel_passes
