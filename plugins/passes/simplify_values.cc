// simplify_values.cc: rules for arithmetic and logic. A constant that is neutral for its op leaves, but only
// where the result has the type of what is left: a neutral constant may still broadcast.
#include <algorithm>
#include <cmath>
#include <limits>

#include "elementwise.h"
#include "numbers.h"
#include "passes.h"

namespace keel_passes {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

bool all_spread(const Edit& e, NodeId n) {
  const Dims result = e.type(e.out(n)).dims;
  const Ids in = e.ins(n);
  return std::all_of(in.begin(), in.end(),
                     [&](keel_value v) { return surely_spreads(e, e.type(v).dims, result); });
}

bool keep(Edit& e, NodeId n, size_t operand) {
  const keel_value x = e.in(n, operand);
  return e.same_type(x, e.out(n)) && all_spread(e, n) && e.replace(n, x);
}

// x op c is x where c is neutral; so is c op x where the op is commutative.
bool drop_right(Edit& e, NodeId n, double neutral) { return is_all(e, e.in(n, 1), neutral) && keep(e, n, 0); }
bool drop_either(Edit& e, NodeId n, double neutral) {
  return drop_right(e, n, neutral) || (is_all(e, e.in(n, 0), neutral) && keep(e, n, 1));
}
template <int neutral>
bool right(Edit& e, NodeId n) {
  return drop_right(e, n, neutral);
}
template <int neutral>
bool either(Edit& e, NodeId n) {
  return drop_either(e, n, neutral);
}

bool add_nothing(Edit& e, NodeId n) {
  return drop_either(e, n, is_float(e.type(e.out(n)).dtype) ? -0.0 : 0.0);  // -0 + 0 is 0
}

bool maximum_with_least(Edit& e, NodeId n) {
  return is_float(e.type(e.out(n)).dtype) && drop_either(e, n, -kInf);
}
bool minimum_with_greatest(Edit& e, NodeId n) {
  return is_float(e.type(e.out(n)).dtype) && drop_either(e, n, kInf);
}

bool bit_and_all(Edit& e, NodeId n) {
  const keel_dt dtype = e.type(e.out(n)).dtype;
  const uint32_t bits = width_of(dtype) * 8;
  if ((dtype & 0xff) == 0) return drop_either(e, n, -1);
  return bits <= 32 && drop_either(e, n, std::ldexp(1, static_cast<int>(bits)) - 1);
}

// x / 2^k is x * 2^-k: both are the one nearest number. Powers whose inverse is subnormal or infinite stay.
bool divide_by_power_of_two(Edit& e, NodeId n) {
  const keel_dt dtype = e.type(e.out(n)).dtype;
  const std::optional<double> c = uniform(e, e.in(n, 1));
  const int most = dtype == KEEL_F64 ? 1000 : dtype == KEEL_F16 ? 12 : 120;
  int power = 0;
  if (!is_float(dtype) || !c || std::fabs(std::frexp(*c, &power)) != 0.5 || std::abs(power - 1) > most)
    return false;
  e.at(n);
  const keel_value inverse = scalar(e, dtype, 1 / *c);
  const keel_value y = e.add("mul", {e.in(n, 0), inverse});
  return e.same_type(y, e.out(n)) && e.replace(n, y);
}

bool undo_unary(Edit& e, NodeId n) {
  const NodeId inner = e.made_by(e.in(n, 0), e.op(n));
  if (inner == kNone) return false;
  const bool inverse = elementwise(e.op(n)) & kSelfInverse;
  return e.replace(n, inverse ? e.in(inner, 0) : e.out(inner));
}

bool add_of_neg(Edit& e, NodeId n) {
  for (size_t i : {1, 0}) {
    const NodeId neg = e.made_by(e.in(n, i), "neg");
    if (neg == kNone) continue;
    e.at(n);
    return e.replace(n, e.add("sub", {e.in(n, 1 - i), e.in(neg, 0)}));
  }
  return false;
}
bool sub_of_neg(Edit& e, NodeId n) {
  const NodeId neg = e.made_by(e.in(n, 1), "neg");
  if (neg == kNone) return false;
  e.at(n);
  return e.replace(n, e.add("add", {e.in(n, 0), e.in(neg, 0)}));
}

bool not_of_equal(Edit& e, NodeId n) {
  const NodeId inner = e.producer(e.in(n, 0));
  const char* opposite = e.is(inner, "equal") ? "not_equal" : e.is(inner, "not_equal") ? "equal" : nullptr;
  if (opposite == nullptr) return false;
  e.at(n);
  return e.replace(n, e.add(opposite, e.ins(inner)));
}

bool select_known(Edit& e, NodeId n) {
  const std::optional<double> p = uniform(e, e.in(n, 0));
  if ((!p && e.in(n, 1) != e.in(n, 2)) || !all_spread(e, n)) return false;
  const keel_value chosen = e.in(n, p && *p == 0 ? 2 : 1);
  if (e.same_type(chosen, e.out(n))) return e.replace(n, chosen);
  e.at(n);
  return e.replace(n, e.add("broadcast_to", {chosen}, Attrs().dims("dims", e.type(e.out(n)).dims)));
}

constexpr Rule kRules[] = {
    {"add", add_nothing},
    {"add", add_of_neg},
    {"sub", right<0>},
    {"sub", sub_of_neg},
    {"mul", either<1>},
    {"div", right<1>},
    {"div", divide_by_power_of_two},
    {"pow", right<1>},
    {"maximum", maximum_with_least},
    {"minimum", minimum_with_greatest},
    {"logical_and", either<1>},
    {"logical_or", either<0>},
    {"logical_xor", either<0>},
    {"bit_and", bit_and_all},
    {"bit_or", either<0>},
    {"bit_xor", either<0>},
    {"shift_left", right<0>},
    {"shift_right", right<0>},
    {"neg", undo_unary},
    {"logical_not", undo_unary},
    {"logical_not", not_of_equal},
    {"bit_not", undo_unary},
    {"abs", undo_unary},
    {"sign", undo_unary},
    {"floor", undo_unary},
    {"ceil", undo_unary},
    {"round", undo_unary},
    {"relu", undo_unary},
    {"select", select_known},
};

}  // namespace

Rules value_rules() { return kRules; }

}  // namespace keel_passes
