// quantised.cc: products, convolutions and maxima of dequantised 8-bit integers are computed in integers.
//
// A Dequantised value is (cast(q) - zero) * scale, with constants; the subtraction may be missing. A
// contraction of two becomes the integer contraction times the product of both scales, if the device has an
// impl of it. max_pool moves before the dequantisation. A value that is quantised as it was before is itself,
// also after moves of its elements.
#include <algorithm>
#include <cmath>

#include "plugins/passes/edit/numbers.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

using Numbers = std::vector<double>;

struct Dequantised {
  keel_value q;         // i8 or u8
  Numbers zero, scale;  // one, or one for each index along `axis`
  size_t axis = 0;
  keel_value subtracted = KEEL_NO_VALUE, factor;  // the same as operands
  bool whole() const { return zero.size() == 1 && scale.size() == 1; }
};

bool is_scale(const Edit& e, keel_value v) {
  const NodeId moved = e.made_by(v, "reshape");
  return e.constant(moved == kNone ? v : e.in(moved, 0));
}

// Whether operand i is a constant, or a small one that was only cast or reshaped, which is evaluated.
bool known(Edit& e, NodeId n, size_t i) {
  constexpr int64_t kMost = 1 << 16;
  const keel_value v = e.in(n, i);
  if (e.constant(v)) return true;
  const NodeId from = e.producer(v);
  if (from == kNone || (!e.is(from, "cast") && !e.is(from, "reshape")) || e.type(v).count() > kMost)
    return false;
  return known(e, from, 0) && e.eval(from);
}

// The numbers of operand i, an f32 constant that varies along one dim of `dims` at most, and that dim in
// *axis.
std::optional<Numbers> along(Edit& e, NodeId n, size_t i, const Dims& dims, size_t* axis) {
  if (!known(e, n, i)) return std::nullopt;
  const Type t = e.type(e.in(n, i));
  if (t.rank() > dims.size()) return std::nullopt;
  const size_t shift = dims.size() - t.rank();
  for (size_t d = 0; d < t.rank(); d++) {
    if (t.dims[d] == 1) continue;
    if (t.dims[d] != t.count() || !e.same(t.dims[d], dims[d + shift])) return std::nullopt;
    *axis = d + shift;
  }
  return doubles(e, e.in(n, i));
}

std::optional<Dequantised> dequantised(Edit& e, keel_value v) {
  Dequantised d;
  const NodeId mul = e.made_by(v, "mul");
  if (mul == kNone || e.type(v).dtype != KEEL_F32) return std::nullopt;
  const Dims dims = e.type(v).dims;
  size_t zero_axis = 0;
  const size_t left = is_scale(e, e.in(mul, 1)) ? 0 : 1;
  if (!is_scale(e, e.in(mul, 1 - left))) return std::nullopt;
  keel_value x = e.in(mul, left);
  std::optional<Numbers> scale = along(e, mul, 1 - left, dims, &d.axis), zero = Numbers{0};
  d.factor = e.in(mul, 1 - left);
  if (const NodeId sub = e.made_by(x, "sub"); sub != kNone) {
    zero = along(e, sub, 1, dims, &zero_axis);
    d.subtracted = e.in(sub, 1);
    x = e.in(sub, 0);
  }
  const NodeId cast = e.made_by(x, "cast");
  if (!scale || !zero || cast == kNone || !e.same(e.type(x).dims, dims)) return std::nullopt;
  if (zero->size() > 1 && scale->size() > 1 && zero_axis != d.axis) return std::nullopt;
  if (zero->size() > 1) d.axis = zero_axis;
  d.q = e.in(cast, 0);
  d.zero = std::move(*zero), d.scale = std::move(*scale);
  const keel_dt dtype = e.type(d.q).dtype;
  const double least = dtype == KEEL_I8 ? -128 : 0;
  const auto fits = [&](double z) { return z == std::floor(z) && z >= least && z <= least + 255; };
  if ((dtype != KEEL_I8 && dtype != KEEL_U8) || !std::ranges::all_of(d.zero, fits)) return std::nullopt;
  return d;
}

// A zero point as an operand; none if it is 0.
keel_value zero_operand(Edit& e, const Dequantised& d) {
  if (std::ranges::all_of(d.zero, [](double z) { return z == 0; })) return KEEL_NO_VALUE;
  std::vector<uint8_t> bytes;
  for (double z : d.zero) bytes.push_back(static_cast<uint8_t>(static_cast<int>(z)));
  Dims dims;
  if (bytes.size() > 1) {
    dims.assign(e.type(d.q).rank() - d.axis, 1);
    dims[0] = static_cast<keel_dim>(bytes.size());
  }
  return e.constant(e.type(d.q).dtype, dims, bytes.data());
}

Ids operands(Edit& e, const Dequantised& x, const Dequantised& w) {
  Ids in = {x.q, w.q, zero_operand(e, x), zero_operand(e, w)};
  while (in.back() == KEEL_NO_VALUE) in.pop_back();
  return in;
}

// Replaces n by the integers `y` times the scales of both operands; those of w vary along the result's dim
// that is `back` from the end.
bool replace_scaled(Edit& e, NodeId n, keel_value y, const Dequantised& x, const Dequantised& w,
                    size_t back) {
  if (!e.supported(e.producer(y))) return false;
  Numbers by;
  for (double s : w.scale) by.push_back(s * x.scale[0]);
  Dims dims;
  if (by.size() > 1) dims.assign(back + 1, 1), dims[0] = static_cast<keel_dim>(by.size());
  const std::optional<keel_value> scale = store(e, KEEL_F32, dims, by);
  return scale && e.replace(n, e.add("mul", {e.add("cast", {y}, Attrs().dtype("to", KEEL_F32)), *scale}));
}

bool integer_conv(Edit& e, NodeId n) {
  const std::optional<Dequantised> x = dequantised(e, e.in(n, 0)), w = dequantised(e, e.in(n, 1));
  if (!x || !w || !x->whole() || w->axis != 0) return false;
  e.at(n);
  const Attrs attrs = e.attrs(n, {"stride", "dil", "lo", "hi", "groups"});
  const keel_value y = e.add("conv_integer", operands(e, *x, *w), attrs);
  return replace_scaled(e, n, y, *x, *w, e.type(e.out(n)).rank() - 2);
}

bool integer_matmul(Edit& e, NodeId n) {
  std::optional<Dequantised> x = dequantised(e, e.in(n, 0)), w = dequantised(e, e.in(n, 1));
  if (!x || !w || !x->whole() || e.integer(n, "ta") != 0) return false;
  const bool transposed = e.integer(n, "tb") != 0;
  const size_t rank = e.type(w->q).rank();
  if (e.type(x->q).rank() < 2 || rank < 2 || (transposed && (rank != 2 || !e.constant(w->q)))) return false;
  if (!w->whole() && (w->axis != (transposed ? rank - 2 : rank - 1))) return false;
  e.at(n);
  if (transposed) {
    const Ints perm = {1, 0};
    w->q = e.add("transpose", {w->q}, Attrs().ints("perm", perm));
    w->axis = 1;
  }
  return replace_scaled(e, n, e.add("matmul_integer", operands(e, *x, *w)), *x, *w, 0);
}

// The maximum keeps its place in an increasing function.
bool pool_of_integers(Edit& e, NodeId n) {
  const std::optional<Dequantised> x = dequantised(e, e.in(n, 0));
  if (!x || !x->whole() || !(x->scale[0] > 0)) return false;
  e.at(n);
  const keel_value pooled = e.add("max_pool", {x->q}, e.attrs(n, {"window", "stride", "dil", "lo", "hi"}));
  if (!e.supported(e.producer(pooled))) return false;
  keel_value y = e.add("cast", {pooled}, Attrs().dtype("to", KEEL_F32));
  if (x->subtracted != KEEL_NO_VALUE) y = e.add("sub", {y, x->subtracted});
  return e.replace(n, e.add("mul", {y, x->factor}));
}

std::optional<double> number(Edit& e, NodeId n, size_t i) {
  return known(e, n, i) ? uniform(e, e.in(n, i)) : std::nullopt;
}

// Ops that only move elements, with their attribute.
const char* moved_by(std::string_view op) {
  return op == "reshape" ? "to" : op == "transpose" ? "perm" : nullptr;
}

// The moves that end in *v, the last one first; *v becomes the value that they begin with.
std::vector<NodeId> moves_before(const Edit& e, keel_value* v) {
  std::vector<NodeId> moves;
  for (NodeId n = e.producer(*v); n != kNone && moved_by(e.op(n)); n = e.producer(*v)) {
    moves.push_back(n);
    *v = e.in(n, 0);
  }
  return moves;
}

keel_value moved(Edit& e, keel_value v, const std::vector<NodeId>& moves) {
  for (auto n = moves.rbegin(); n != moves.rend(); ++n)
    v = e.add(std::string(e.op(*n)), {v}, e.attrs(*n, {moved_by(e.op(*n))}));
  return v;
}

// cast(clamp(round(x / scale) + zero)), where x was dequantised with the same scale and zero point.
bool quantised_again(Edit& e, NodeId n) {
  const NodeId clamp = e.made_by(e.in(n, 0), "clamp");
  if (clamp == kNone) return false;
  keel_value v = e.in(clamp, 0);
  double zero = 0;
  if (const NodeId add = e.made_by(v, "add"); add != kNone) {
    const std::optional<double> z = number(e, add, 1);
    if (!z) return false;
    zero = *z, v = e.in(add, 0);
  }
  const NodeId round = e.made_by(v, "round");
  const NodeId div = round == kNone ? kNone : e.made_by(e.in(round, 0), "div");
  if (div == kNone) return false;
  keel_value before = e.in(div, 0);
  const std::vector<NodeId> moves = moves_before(e, &before);
  const std::optional<Dequantised> x = dequantised(e, before);
  const std::optional<double> scale = number(e, div, 1), low = number(e, clamp, 1),
                              high = number(e, clamp, 2);
  if (!x || !x->whole() || !scale || !low || !high) return false;
  const double least = e.type(x->q).dtype == KEEL_I8 ? -128 : 0;
  const bool same = x->scale[0] == *scale && x->zero[0] == zero && *low == least && *high == least + 255;
  // In this range no product of an 8-bit integer and the scale is rounded to an infinity or loses digits.
  const bool exact = std::fabs(*scale) > 1e-30 && std::fabs(*scale) < 1e30;
  if (!same || !exact || e.type(x->q).dtype != e.type(e.out(n)).dtype) return false;
  e.at(n);
  return e.replace(n, moved(e, x->q, moves));
}

constexpr Rule kRules[] = {
    {"conv", integer_conv},
    {"matmul", integer_matmul},
    {"max_pool", pool_of_integers},
    {"cast", quantised_again},
};

}  // namespace

void quantised(Edit& e) { apply(e, {kRules}); }

}  // namespace keel_passes
