// pattern.cc: matching steps shared by the composites.
#include "plugins/passes/compose/pattern.h"

#include <algorithm>

#include "plugins/passes/edit/numbers.h"

namespace keel_passes {
namespace {

// Whether dims broadcast like `wanted`.
bool broadcasts_as(const Edit& e, Dims dims, const Dims& wanted) {
  if (dims.size() > wanted.size()) return false;
  dims.insert(dims.begin(), wanted.size() - dims.size(), 1);
  return e.same(dims, wanted);
}

}  // namespace

NodeId Pattern::made_by(keel_value v, std::string_view op) {
  const NodeId n = edit_->made_by(v, op);
  if (n != kNone && std::find(nodes_.begin(), nodes_.end(), n) == nodes_.end()) nodes_.push_back(n);
  return n;
}

keel_value Pattern::operand(keel_value v, std::string_view op) {
  const NodeId n = made_by(v, op);
  return n == kNone ? KEEL_NO_VALUE : edit_->in(n, 0);
}

keel_value Pattern::plain(keel_value v) {
  for (keel_value x = v; x != KEEL_NO_VALUE; v = x) {
    if (!edit_->single_use(v)) return v;
    x = operand(v, "identity");
    if (x == KEEL_NO_VALUE) x = operand(v, "stop_gradient");
    if (x == KEEL_NO_VALUE) return v;
  }
  return v;
}

// x of x * c or x / c with equal dims; *factor accumulates c.
keel_value Pattern::averaged(keel_value v, double* factor) {
  const NodeId n = edit_->producer(v);
  const bool divides = edit_->is(n, "div");
  if (!divides && !edit_->is(n, "mul")) return KEEL_NO_VALUE;
  for (size_t i = divides ? 1 : 0; i < 2; i++) {
    const std::optional<double> c = uniform(*edit_, edit_->in(n, i));
    const keel_value x = edit_->in(n, 1 - i);
    if (!c || !edit_->same_type(x, v)) continue;
    made_by(v, edit_->op(n));
    *factor = divides ? *factor / *c : *factor * *c;
    return x;
  }
  return KEEL_NO_VALUE;
}

keel_value Pattern::unscaled(keel_value v, double* factor) {
  while (edit_->single_use(v)) {
    const keel_value x = averaged(v, factor);
    if (x == KEEL_NO_VALUE) break;
    v = x;
  }
  return v;
}

keel_value Pattern::reduced(keel_value v, std::string_view op, int64_t* axis) {
  v = plain(v);
  const NodeId spread = made_by(v, "broadcast_to");
  if (spread != kNone) v = plain(edit_->in(spread, 0));
  const Dims given = edit_->type(v).dims;
  double factor = 1;
  const bool mean = op == "reduce_mean";
  for (keel_value x = v; x != KEEL_NO_VALUE;) {
    v = plain(x);
    x = operand(v, "reshape");
    if (x == KEEL_NO_VALUE && mean) x = averaged(v, &factor);
  }
  NodeId n = made_by(v, op);
  const bool sums = n == kNone && mean;
  if (sums) n = made_by(v, "reduce_sum");
  if (n == kNone) return KEEL_NO_VALUE;
  const Ints axes = edit_->list(n, "axes");
  const keel_value x = edit_->in(n, 0);
  Dims kept = edit_->type(x).dims;
  if (axes.empty()) return KEEL_NO_VALUE;
  keel_dim& length = kept[static_cast<size_t>(*axis = axes[0])];
  const double count = is_number(length) ? static_cast<double>(length) : 0;
  if (!near(sums ? factor * count : factor, 1, edit_->type(x).dtype)) return KEEL_NO_VALUE;
  length = 1;
  return broadcasts_as(*edit_, given, kept) ? x : KEEL_NO_VALUE;
}

keel_value Pattern::squared(keel_value v) {
  if (const keel_value x = operand(v, "square"); x != KEEL_NO_VALUE) return x;
  const NodeId n = edit_->producer(v);
  if (!edit_->is(n, "mul") && !edit_->is(n, "pow")) return KEEL_NO_VALUE;
  const keel_value x = edit_->in(n, 0), y = edit_->in(n, 1);
  const bool twice = edit_->is(n, "mul") ? x == y : is_all(*edit_, y, 2) && edit_->same_type(x, v);
  return twice && made_by(v, edit_->op(n)) != kNone ? x : KEEL_NO_VALUE;
}

keel_value Pattern::inverted(keel_value v) {
  if (const keel_value x = operand(v, "reciprocal"); x != KEEL_NO_VALUE) return x;
  const NodeId n = edit_->made_by(v, "div");
  const bool one = n != kNone && is_all(*edit_, edit_->in(n, 0), 1) && edit_->same_type(edit_->in(n, 1), v);
  return one && made_by(v, "div") != kNone ? edit_->in(n, 1) : KEEL_NO_VALUE;
}

keel_value Pattern::power(keel_value v, const char* op, double exponent) {
  if (const keel_value x = operand(v, op); x != KEEL_NO_VALUE) return x;
  const NodeId n = edit_->made_by(v, "pow");
  const bool that = n != kNone && is_all(*edit_, edit_->in(n, 1), exponent);
  if (!that || !edit_->same_type(edit_->in(n, 0), v)) return KEEL_NO_VALUE;
  return edit_->in(made_by(v, "pow"), 0);
}

bool Pattern::closed() const {
  const auto known = [&](NodeId user) {
    return std::find(nodes_.begin(), nodes_.end(), user) != nodes_.end();
  };
  for (size_t i = 1; i < nodes_.size(); i++)
    for (keel_value v : edit_->outs(nodes_[i])) {
      const std::vector<NodeId> users = edit_->users(v);
      if (edit_->fetched(v) || !std::all_of(users.begin(), users.end(), known)) return false;
    }
  return true;
}

bool Pattern::become(const char* op, const Ids& in, const Attrs& attrs) {
  const NodeId root = nodes_[0];
  edit_->at(root);
  const keel_value y = edit_->add(op, in, attrs);
  const bool same = edit_->same_type(y, edit_->out(root)) && edit_->supported(edit_->producer(y));
  return same && edit_->replace(root, y);
}

}  // namespace keel_passes
