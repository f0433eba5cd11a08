// shapes.cc: rules by which ops that compute lose the moves around them, where text would be longer.
#include <algorithm>
#include <utility>

#include "plugins/passes/edit/elementwise.h"
#include "plugins/passes/passes.h"

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

constexpr Rule kRules[] = {
    {"matmul", matmul_of_transpose}, {"add", spread_operand},           {"sub", spread_operand},
    {"mul", spread_operand},         {"div", spread_operand},           {"pow", spread_operand},
    {"maximum", spread_operand},     {"minimum", spread_operand},       {"equal", spread_operand},
    {"not_equal", spread_operand},   {"less", spread_operand},          {"less_equal", spread_operand},
    {"greater", spread_operand},     {"greater_equal", spread_operand}, {"logical_and", spread_operand},
    {"logical_or", spread_operand},  {"logical_xor", spread_operand},   {"select", spread_operand},
};

}  // namespace

Rules shape_rules() { return kRules; }

}  // namespace keel_passes
