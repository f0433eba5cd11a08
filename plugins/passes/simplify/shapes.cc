// shapes.cc: rules that remove moves and broadcasts before computing ops, where rules as text would be
// longer.
#include <algorithm>
#include <utility>

#include "plugins/passes/edit/elementwise.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

// Dim `back` from the end; 1 beyond the rank.
keel_dim from_end(const Dims& dims, size_t back) {
  return back < dims.size() ? dims[dims.size() - 1 - back] : 1;
}

// Whether the operands still broadcast to the result's dims if operand i has these dims.
bool still_broadcasts(Edit& e, const Ids& in, size_t i, const Dims& dims, const Dims& result) {
  for (size_t back = 0; back < result.size(); back++) {
    const keel_dim wanted = from_end(result, back);
    bool found = wanted == 1;
    for (size_t j = 0; j < in.size() && !found; j++)
      found = e.same(from_end(j == i ? dims : e.type(in[j]).dims, back), wanted);
    if (!found) return false;
  }
  return true;
}

// An op that broadcasts by itself needs no broadcast operand.
bool drop_broadcast(Edit& e, NodeId n) {
  Ids in = e.ins(n);
  const Dims result = e.type(e.out(n)).dims;
  for (size_t i = 0; i < in.size(); i++) {
    const NodeId spread = e.producer(in[i]);
    if (!e.is(spread, "broadcast_to") && !e.is(spread, "fill")) continue;
    const keel_value x = e.in(spread, 0);
    if (!surely_broadcasts(e, e.type(in[i]).dims, result)) continue;
    if (!still_broadcasts(e, in, i, e.type(x).dims, result)) continue;
    in[i] = x;
    e.at(n);
    return e.replace(n, e.add(std::string(e.op(n)), in));
  }
  return false;
}

bool is_identity(const Ints& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// matmul reads an operand with its last two dims swapped by a flag. From a longer permutation only the swap
// moves into the flag, if the remaining transpose moves whole rows.
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
    {"matmul", matmul_of_transpose}, {"add", drop_broadcast},           {"sub", drop_broadcast},
    {"mul", drop_broadcast},         {"div", drop_broadcast},           {"pow", drop_broadcast},
    {"maximum", drop_broadcast},     {"minimum", drop_broadcast},       {"equal", drop_broadcast},
    {"not_equal", drop_broadcast},   {"less", drop_broadcast},          {"less_equal", drop_broadcast},
    {"greater", drop_broadcast},     {"greater_equal", drop_broadcast}, {"logical_and", drop_broadcast},
    {"logical_or", drop_broadcast},  {"logical_xor", drop_broadcast},   {"select", drop_broadcast},
};

}  // namespace

Rules shape_rules() { return kRules; }

}  // namespace keel_passes
