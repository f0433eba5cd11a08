// transpose.cc: cancels transposes and reshapes across the ops between them.
//
// A rule starts where a move can end: at a transpose or reshape, which disappears; at an operand of matmul,
// whose flag absorbs it; at a reduction, which accepts any order of dims; then adjacent moves are merged. It
// applies only if fewer moves remain, so it terminates.
#include <algorithm>

#include "plugins/passes/passes.h"
#include "plugins/passes/simplify/move_propagation.h"

namespace keel_passes {
namespace {

bool cancelled(Edit& e, NodeId n, Move move) {
  MovePropagation propagation(e, e.in(n, 0), std::move(move));
  if (propagation.cost() > 0) return false;  // n itself disappears
  e.at(n);
  if (!e.replace(n, propagation.done())) return false;
  propagation.fold();
  return true;
}

bool transposed(Edit& e, NodeId n) { return cancelled(e, n, {e.list(n, "perm"), {}}); }

// Repeats a rule of simplify, which does not run after this pass.
bool reshaped_twice(Edit& e, NodeId n, NodeId before) {
  const Dims to = e.type(e.out(n)).dims;
  const keel_value x = e.in(before, 0);
  e.at(n);
  return e.replace(n, e.same(e.type(x).dims, to) ? x : e.add("reshape", {x}, Attrs().dims("to", to)));
}

bool reshaped(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  if (const NodeId before = e.made_by(x, "reshape"); before != kNone) return reshaped_twice(e, n, before);
  return e.producer(x) != kNone && e.type(x).rank() > 0 && cancelled(e, n, {{}, e.type(e.out(n)).dims});
}

// The last two dims swapped.
bool multiplied(Edit& e, NodeId n) {
  Ids in = e.ins(n);
  bool flags[2] = {e.integer(n, "ta") != 0, e.integer(n, "tb") != 0};
  for (size_t i = 0; i < 2; i++) {
    Ints perm(e.type(in[i]).rank());
    if (perm.size() < 2) continue;
    for (size_t d = 0; d < perm.size(); d++) perm[d] = static_cast<int64_t>(d);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    MovePropagation propagation(e, in[i], {perm, {}});
    if (propagation.cost() >= 0) continue;
    e.at(n);
    in[i] = propagation.done();
    flags[i] = !flags[i];
    if (!e.replace(n, e.add("matmul", in, Attrs().flag("ta", flags[0]).flag("tb", flags[1])))) return false;
    propagation.fold();
    return true;
  }
  return false;
}

// The inverse permutation of the first transpose that the value depends on; visits at most *left values.
Ints order_back(const Edit& e, keel_value v, int* left) {
  const NodeId n = e.producer(v);
  if (n == kNone || --*left < 0) return {};
  if (e.is(n, "transpose")) return inverse(e.list(n, "perm"));
  for (keel_value in : e.ins(n)) {
    if (in == KEEL_NO_VALUE || e.type(in).rank() != e.type(v).rank()) continue;
    if (Ints perm = order_back(e, in, left); !perm.empty()) return perm;
  }
  return {};
}

bool reduced(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  int looks = 64;
  const Ints perm = order_back(e, x, &looks);
  Ints axes, kept, old = e.list(n, "axes");
  if (perm.empty() || (old.size() > 1 && !e.is(n, "reduce_max") && !e.is(n, "reduce_min"))) return false;
  for (size_t i = 0; i < perm.size(); i++) {
    const bool gone = std::find(old.begin(), old.end(), perm[i]) != old.end();
    (gone ? axes : kept).push_back(gone ? static_cast<int64_t>(i) : perm[i]);
  }
  if (!std::is_sorted(kept.begin(), kept.end())) return false;  // the result would need a move
  MovePropagation propagation(e, x, {perm, {}});
  if (propagation.cost() >= 0) return false;
  e.at(n);
  keel_value y = e.add(std::string(e.op(n)), {propagation.done()}, Attrs().ints("axes", axes));
  if (e.integer(n, "keep") != 0) y = e.add("reshape", {y}, Attrs().dims("to", e.type(e.out(n)).dims));
  if (!e.replace(n, y)) return false;
  propagation.fold();
  return true;
}

constexpr Rule kRules[] = {{"transpose", transposed}, {"reshape", reshaped},   {"matmul", multiplied},
                           {"reduce_max", reduced},   {"reduce_min", reduced}, {"reduce_sum", reduced},
                           {"reduce_mean", reduced},  {"reduce_prod", reduced}};

}  // namespace

// New moves may be equal to others.
void transpose(Edit& e) {
  apply(e, {kRules, moving_rules()});
  cse(e);
}

}  // namespace keel_passes
