// nearby_forms.cc: cheaper ways to write the same: products for powers, rsqrt, sigmoid, silu.
#include "numbers.h"
#include "passes.h"

namespace keel_passes {
namespace {

// Where the exponent does not broadcast: x * x has one rounding, x * x * x two.
bool power_to_product(Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0), power = e.in(n, 1);
  if (!e.same_type(x, e.out(n))) return false;
  e.at(n);
  if (is_all(e, power, 2)) return e.replace(n, e.add("mul", {x, x}));
  if (is_all(e, power, 3)) return e.replace(n, e.add("mul", {e.add("mul", {x, x}), x}));
  if (is_all(e, power, -1) && is_float(e.type(x).dtype)) return e.replace(n, e.add("reciprocal", {x}));
  return false;
}

bool reciprocal_of_root(Edit& e, NodeId n) {
  const NodeId root = e.made_by(e.in(n, 0), "sqrt");
  if (root == kNone || !e.single_use(e.in(n, 0))) return false;
  e.at(n);
  return e.replace(n, e.add("rsqrt", {e.in(root, 0)}));
}

bool divide_by_root(Edit& e, NodeId n) {
  const NodeId root = e.made_by(e.in(n, 1), "sqrt");
  if (root == kNone || !e.single_use(e.in(n, 1))) return false;
  e.at(n);
  const keel_value inverse = e.add("rsqrt", {e.in(root, 0)});
  if (is_all(e, e.in(n, 0), 1) && e.same_type(inverse, e.out(n))) return e.replace(n, inverse);
  return e.replace(n, e.add("mul", {e.in(n, 0), inverse}));
}

// 1 + exp(-x), used once -> x
keel_value logistic_of(const Edit& e, keel_value v) {
  const NodeId sum = e.made_by(v, "add");
  for (size_t i = 0; sum != kNone && e.single_use(v) && i < 2; i++) {
    const keel_value power = e.in(sum, i);
    const NodeId exp = e.made_by(power, "exp");
    const NodeId neg = exp == kNone ? kNone : e.made_by(e.in(exp, 0), "neg");
    if (neg != kNone && e.single_use(power) && e.single_use(e.in(exp, 0)) && is_all(e, e.in(sum, 1 - i), 1))
      return e.in(neg, 0);
  }
  return KEEL_NO_VALUE;
}

bool to_sigmoid(Edit& e, NodeId n, size_t operand) {
  const keel_value x = logistic_of(e, e.in(n, operand));
  if (x == KEEL_NO_VALUE || !e.same_type(x, e.out(n))) return false;
  e.at(n);
  return e.replace(n, e.add("sigmoid", {x}));
}
bool reciprocal_to_sigmoid(Edit& e, NodeId n) { return to_sigmoid(e, n, 0); }
bool quotient_to_sigmoid(Edit& e, NodeId n) { return is_all(e, e.in(n, 0), 1) && to_sigmoid(e, n, 1); }

bool product_to_silu(Edit& e, NodeId n) {
  for (size_t i = 0; i < 2; i++) {
    const NodeId gate = e.made_by(e.in(n, i), "sigmoid");
    if (gate == kNone || !e.single_use(e.in(n, i)) || e.in(gate, 0) != e.in(n, 1 - i)) continue;
    e.at(n);
    return e.replace(n, e.add("silu", {e.in(gate, 0)}));
  }
  return false;
}

constexpr Rule kRules[] = {
    {"pow", power_to_product}, {"reciprocal", reciprocal_of_root}, {"reciprocal", reciprocal_to_sigmoid},
    {"div", divide_by_root},   {"div", quotient_to_sigmoid},       {"mul", product_to_silu},
};

}  // namespace

Rules form_rules() { return kRules; }

}  // namespace keel_passes
