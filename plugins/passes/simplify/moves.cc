// moves.cc: rules for ops that move elements, which passes.rules cannot express: variadic operands, and
// transposes of dims of size 1.
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

// A transpose that keeps the order of all dims other than 1 is a reshape.
bool transpose_of_ones(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  const Dims from = e.type(x).dims, to = e.type(e.out(n)).dims;
  int64_t last = -1;
  for (int64_t axis : e.list(n, "perm")) {
    if (from[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  if (e.same(from, to)) return e.replace(n, x);
  e.at(n);
  return e.replace(n, e.add("reshape", {x}, Attrs().dims("to", to)));
}

// Drops operands that are empty along the axis; a single remaining operand needs no concat.
bool concat_of_one(Edit& e, NodeId n) {
  const auto axis = static_cast<size_t>(e.integer(n, "axis"));
  const Ids in = e.ins(n);
  Ids kept;
  for (keel_value v : in)
    if (e.type(v).dims[axis] != 0) kept.push_back(v);
  if (kept.empty()) kept = {in[0]};
  if (kept.size() == 1) return e.replace(n, kept[0]);
  if (kept.size() == in.size()) return false;
  e.at(n);
  return e.replace(n, e.add("concat", kept, Attrs().i("axis", static_cast<int64_t>(axis))));
}

bool split_of_one(Edit& e, NodeId n) { return e.outs(n).size() == 1 && e.replace(n, e.in(n, 0)); }

constexpr Rule kRules[] = {
    {"transpose", transpose_of_ones},
    {"concat", concat_of_one},
    {"split", split_of_one},
};

}  // namespace

Rules moving_rules() { return kRules; }

}  // namespace keel_passes
