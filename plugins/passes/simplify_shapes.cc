// simplify_shapes.cc: rules by which ops that compute lose the moves around them.
#include <algorithm>
#include <utility>

#include "elementwise.h"
#include "passes.h"

namespace keel_passes {
namespace {

// Dim number `back` of a type, counted from the end; 1 where there is none.
keel_dim from_end(const Dims& dims, size_t back) {
  return back < dims.size() ? dims[dims.size() - 1 - back] : 1;
}

// Would the operands, with number i of these dims, still broadcast to the result's dims?
bool still_spreads(Edit& e, const Ids& in, size_t i, const Dims& dims, const Dims& result) {
  for (size_t back = 0; back < result.size(); back++) {
    const keel_dim wanted = from_end(result, back);
    bool found = wanted == 1;
    for (size_t j = 0; j < in.size() && !found; j++)
      found = e.same(from_end(j == i ? dims : e.type(in[j]).dims, back), wanted);
    if (!found) return false;
  }
  return true;
}

// An op that broadcasts by itself needs no operand that was spread before.
bool spread_operand(Edit& e, NodeId n) {
  Ids in = e.ins(n);
  const Dims result = e.type(e.out(n)).dims;
  for (size_t i = 0; i < in.size(); i++) {
    const NodeId spread = e.producer(in[i]);
    if (!e.is(spread, "broadcast_to") && !e.is(spread, "fill")) continue;
    const keel_value x = e.in(spread, 0);
    if (!surely_spreads(e, e.type(in[i]).dims, result)) continue;
    if (!still_spreads(e, in, i, e.type(x).dims, result)) continue;
    in[i] = x;
    e.at(n);
    return e.replace(n, e.add(std::string(e.op(n)), in));
  }
  return false;
}

// The greatest of one is that one. A sum of one float is not: 0 + -0 is 0.
bool reduce_of_one(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  const Type type = e.type(x);
  const bool sums = e.is(n, "reduce_sum") || e.is(n, "reduce_mean");
  if (sums && !is_integer(type.dtype)) return false;
  for (int64_t axis : e.list(n, "axes"))
    if (type.dims[static_cast<size_t>(axis)] != 1) return false;
  e.at(n);
  return e.replace(n, e.add("reshape", {x}, Attrs().dims("to", e.type(e.out(n)).dims)));
}

bool is_identity(const Ints& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// A matmul reads an operand whose last two dims are swapped as it lies. Of a longer permutation only the swap
// goes into the flag, where that leaves a transpose which moves whole rows.
bool matmul_of_transpose(Edit& e, NodeId n) {
  Ids in = e.ins(n);
  bool flags[2] = {e.integer(n, "ta") != 0, e.integer(n, "tb") != 0};
  for (size_t i = 0; i < 2; i++) {
    const NodeId t = e.made_by(in[i], "transpose");
    if (t == kNone) continue;
    Ints perm = e.list(t, "perm");
    const size_t rank = perm.size();
    std::swap(perm[rank - 1], perm[rank - 2]);
    const bool whole = is_identity(perm);
    if (!whole && (perm[rank - 1] != static_cast<int64_t>(rank) - 1 || !e.single_use(in[i]))) continue;
    e.at(n);
    in[i] = whole ? e.in(t, 0) : e.add("transpose", {e.in(t, 0)}, Attrs().ints("perm", perm));
    flags[i] = !flags[i];
    return e.replace(n, e.add("matmul", in, Attrs().flag("ta", flags[0]).flag("tb", flags[1])));
  }
  return false;
}

// A product of rows that were laid out as one matrix only for it: a reshaped, b a matrix, one user.
bool is_flattened(const Edit& e, NodeId matmul) {
  if (matmul == kNone || !e.single_use(e.out(matmul)) || e.integer(matmul, "ta") != 0) return false;
  const Type a = e.type(e.in(matmul, 0)), b = e.type(e.in(matmul, 1));
  return a.rank() == 2 && b.rank() == 2 && e.made_by(e.in(matmul, 0), "reshape") != kNone &&
         is_number(b.dims[0]) && is_number(b.dims[1]) && b.dims[0] > 0 && b.dims[1] > 0;
}

keel_value unflattened(Edit& e, NodeId matmul, const Dims& result) {
  Dims rows = result;
  rows.back() = e.type(e.in(matmul, 0)).dims[1];
  const keel_value a = e.add("reshape", {e.in(matmul, 0)}, Attrs().dims("to", rows));
  return e.add("matmul", {a, e.in(matmul, 1)}, Attrs().flag("tb", e.integer(matmul, "tb") != 0));
}

// reshape(matmul(reshape(x), w)) is matmul(x, w) for rows in any number of dims; also with a bias.
bool reshape_of_flattened(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  const Dims from = e.type(x).dims, to = e.type(e.out(n)).dims;
  if (from.size() != 2 || to.size() < 2 || !e.same(from[1], to.back())) return false;
  if (const NodeId m = e.made_by(x, "matmul"); is_flattened(e, m)) {
    e.at(n);
    return e.replace(n, unflattened(e, m, to));
  }
  const NodeId add = e.made_by(x, "add");
  if (add == kNone || !e.single_use(x)) return false;
  for (size_t i = 0; i < 2; i++) {
    const NodeId m = e.made_by(e.in(add, i), "matmul");
    const keel_value bias = e.in(add, 1 - i);
    if (!is_flattened(e, m) || e.type(bias).rank() > 1) continue;
    e.at(n);
    return e.replace(n, e.add("add", {unflattened(e, m, to), bias}));
  }
  return false;
}

constexpr Rule kRules[] = {
    {"reduce_max", reduce_of_one},     {"reduce_min", reduce_of_one},     {"reduce_prod", reduce_of_one},
    {"reduce_sum", reduce_of_one},     {"reduce_mean", reduce_of_one},    {"matmul", matmul_of_transpose},
    {"reshape", reshape_of_flattened}, {"add", spread_operand},           {"sub", spread_operand},
    {"mul", spread_operand},           {"div", spread_operand},           {"pow", spread_operand},
    {"maximum", spread_operand},       {"minimum", spread_operand},       {"equal", spread_operand},
    {"not_equal", spread_operand},     {"less", spread_operand},          {"less_equal", spread_operand},
    {"greater", spread_operand},       {"greater_equal", spread_operand}, {"logical_and", spread_operand},
    {"logical_or", spread_operand},    {"logical_xor", spread_operand},   {"select", spread_operand},
};

}  // namespace

Rules shape_rules() { return kRules; }

}  // namespace keel_passes
