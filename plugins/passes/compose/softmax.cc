// softmax.cc: recognises exp(x - max(x)) / sum of it along one axis, and its logarithm.
#include "plugins/passes/compose/pattern.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

// x of x - max(x). Without the subtraction exp may be infinite where softmax is not.
keel_value minus_max(Pattern& p, keel_value v, int64_t* axis) {
  const NodeId n = p.made_by(p.plain(v), "sub");
  if (n == kNone) return KEEL_NO_VALUE;
  const keel_value x = p.plain(p.edit().in(n, 0)), most = p.reduced(p.edit().in(n, 1), "reduce_max", axis);
  return most != KEEL_NO_VALUE && p.plain(most) == x ? x : KEEL_NO_VALUE;
}

// e / sum(e) with e = exp(x - max(x))
bool is_quotient(Pattern& p, keel_value e, keel_value sum) {
  int64_t axis = 0, summed = 0;
  if (sum == KEEL_NO_VALUE || p.reduced(sum, "reduce_sum", &summed) != e) return false;
  const keel_value exponent = p.operand(e, "exp");
  const keel_value x = exponent == KEEL_NO_VALUE ? exponent : minus_max(p, exponent, &axis);
  return x != KEEL_NO_VALUE && axis == summed && p.closed() &&
         p.become("softmax", {x}, Attrs().i("axis", axis));
}

bool quotient_to_softmax(Edit& e, NodeId n) {
  Pattern p(e, n);
  return is_quotient(p, e.in(n, 0), e.in(n, 1));
}
bool product_to_softmax(Edit& e, NodeId n) {
  return Pattern(e, n).either(
      n, [](Pattern& p, keel_value x, keel_value y) { return is_quotient(p, x, p.inverted(p.plain(y))); });
}

// d - log(sum(exp(d))) with d = x - max(x)
bool to_log_softmax(Edit& e, NodeId n) {
  Pattern p(e, n);
  int64_t axis = 0, summed = 0;
  const keel_value d = e.in(n, 0), sum = p.operand(p.plain(e.in(n, 1)), "log");
  const keel_value powers = sum == KEEL_NO_VALUE ? sum : p.reduced(sum, "reduce_sum", &summed);
  if (powers == KEEL_NO_VALUE || p.operand(powers, "exp") != d) return false;
  const keel_value x = minus_max(p, d, &axis);
  return x != KEEL_NO_VALUE && axis == summed && p.closed() &&
         p.become("log_softmax", {x}, Attrs().i("axis", axis));
}

constexpr Rule kRules[] = {
    {"div", quotient_to_softmax}, {"mul", product_to_softmax}, {"sub", to_log_softmax}};

}  // namespace

Rules softmax_rules() { return kRules; }

}  // namespace keel_passes
