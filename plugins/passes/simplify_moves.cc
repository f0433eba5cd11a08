// simplify_moves.cc: rules for ops that move or spread elements and do not compute with them.
#include <algorithm>
#include <numeric>

#include "passes.h"

namespace keel_passes {
namespace {

// Also slice, pad, tile and broadcast_to: one whose result has its operand's dims does nothing, for
// start, padding and the like are never negative.
bool same_dims(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  return e.same_type(x, e.out(n)) && e.replace(n, x);
}

bool forward(Edit& e, NodeId n) { return e.replace(n, e.in(n, 0)); }

keel_value reshaped(Edit& e, keel_value x, const Dims& to) {
  return e.same(e.type(x).dims, to) ? x : e.add("reshape", {x}, Attrs().dims("to", to));
}

bool reshape_of_reshape(Edit& e, NodeId n) {
  const NodeId inner = e.made_by(e.in(n, 0), "reshape");
  if (inner == kNone) return false;
  e.at(n);
  return e.replace(n, reshaped(e, e.in(inner, 0), e.type(e.out(n)).dims));
}

bool broadcast_of_broadcast(Edit& e, NodeId n) {
  const NodeId inner = e.made_by(e.in(n, 0), "broadcast_to");
  if (inner == kNone) return false;
  e.at(n);
  return e.replace(n, e.add("broadcast_to", {e.in(inner, 0)}, Attrs().dims("dims", e.type(e.out(n)).dims)));
}

// A transpose that keeps the order of all dims but those of size 1 only renames dims.
bool transpose_of_ones(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  const Dims from = e.type(x).dims;
  int64_t last = -1;
  for (int64_t axis : e.list(n, "perm")) {
    if (from[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  e.at(n);
  return e.replace(n, reshaped(e, x, e.type(e.out(n)).dims));
}

bool transpose_of_transpose(Edit& e, NodeId n) {
  const NodeId inner = e.made_by(e.in(n, 0), "transpose");
  if (inner == kNone) return false;
  Ints perm = e.list(n, "perm");
  const Ints first = e.list(inner, "perm");
  for (int64_t& axis : perm) axis = first[static_cast<size_t>(axis)];
  e.at(n);
  return e.replace(n, e.add("transpose", {e.in(inner, 0)}, Attrs().ints("perm", perm)));
}

bool reverse_of_reverse(Edit& e, NodeId n) {
  const NodeId inner = e.made_by(e.in(n, 0), "reverse");
  return inner != kNone && e.list(n, "axes") == e.list(inner, "axes") && e.replace(n, e.in(inner, 0));
}

// Operands that are empty along the axis leave; what is left alone needs no concat.
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

// Which integers a dtype holds, as the number of bits above which it does not, and its sign.
struct Range {
  int bits;
  bool has_sign;
};
Range range_of(keel_dt dtype) {
  if (dtype == KEEL_BOOL) return {1, false};
  const int width = static_cast<int>(width_of(dtype)) * 8;
  if (is_integer(dtype)) return (dtype & 0xff) == 0 ? Range{width - 1, true} : Range{width, false};
  return {dtype == KEEL_F16 ? 11 : dtype == KEEL_BF16 ? 8 : dtype == KEEL_F32 ? 24 : 53, true};
}

// Does every value of `from` survive in `to`?
bool lossless(keel_dt from, keel_dt to) {
  if (from == to) return true;
  if (is_float(from))
    return is_float(to) && width_of(to) > width_of(from);  // f16 and bf16 hold different numbers
  const Range a = range_of(from), b = range_of(to);
  return a.bits <= b.bits && (!a.has_sign || b.has_sign);
}

// An integer that came by way of floats would saturate, one that came straight wraps: it must fit.
bool cast_of_cast(Edit& e, NodeId n) {
  const NodeId inner = e.made_by(e.in(n, 0), "cast");
  if (inner == kNone) return false;
  const keel_value x = e.in(inner, 0);
  const keel_dt from = e.type(x).dtype, by = e.type(e.out(inner)).dtype, to = e.type(e.out(n)).dtype;
  const bool saturates = !is_float(from) && is_float(by) && is_integer(to);
  if (!lossless(from, by) || (saturates && !lossless(from, to))) return false;
  e.at(n);
  return e.replace(n, from == to ? x : e.add("cast", {x}, Attrs().dtype("to", to)));
}

constexpr Rule kRules[] = {
    {"identity", forward},
    {"reshape", same_dims},
    {"reshape", reshape_of_reshape},
    {"broadcast_to", same_dims},
    {"broadcast_to", broadcast_of_broadcast},
    {"slice", same_dims},
    {"pad", same_dims},
    {"tile", same_dims},
    {"cast", same_dims},
    {"cast", cast_of_cast},
    {"transpose", transpose_of_ones},
    {"transpose", transpose_of_transpose},
    {"reverse", reverse_of_reverse},
    {"concat", concat_of_one},
    {"split", split_of_one},
};

}  // namespace

Rules moving_rules() { return kRules; }

}  // namespace keel_passes
