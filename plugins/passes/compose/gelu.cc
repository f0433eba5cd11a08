// gelu.cc: recognises gelu, by erf and by tanh, with its factors in any order.
//
// A product is flattened into a constant factor and its other operands. Gelu is 0.5 x (1 + erf(x / sqrt 2)),
// or 0.5 x (1 + tanh(0.797885 (x + 0.044715 x^3))).
#include <algorithm>
#include <cmath>

#include "plugins/passes/compose/pattern.h"
#include "plugins/passes/edit/numbers.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

constexpr int kDeepest = 8;

struct Product {
  double number = 1;
  Ids values;
};

// Descends into products that have no other users.
void flatten(const Edit& e, keel_value v, bool is_whole, int depth, Product* p) {
  if (const std::optional<double> c = uniform(e, v)) {
    p->number *= *c;
    return;
  }
  const NodeId n = is_whole || e.single_use(v) ? e.producer(v) : kNone;
  const std::optional<double> right = n == kNone ? std::nullopt : uniform(e, e.in(n, 1));
  if (e.is(n, "mul") && depth < kDeepest) {
    flatten(e, e.in(n, 0), false, depth + 1, p);
    flatten(e, e.in(n, 1), false, depth + 1, p);
  } else if (e.is(n, "div") && right && depth < kDeepest) {
    p->number /= *right;
    flatten(e, e.in(n, 0), false, depth + 1, p);
  } else if (e.is(n, "pow") && right && (*right == 2 || *right == 3)) {
    p->values.insert(p->values.end(), static_cast<size_t>(*right), e.in(n, 0));
  } else {
    p->values.push_back(v);
  }
}

bool is_power(const Product& p, keel_value x, size_t power) {
  return p.values.size() == power &&
         std::count(p.values.begin(), p.values.end(), x) == static_cast<long>(power);
}

struct Gelu {
  const Edit& e;
  keel_value x;
  keel_dt dtype;

  bool is_erf_argument(keel_value v) const {
    Product p;
    flatten(e, v, false, 0, &p);
    return is_power(p, x, 1) && near(p.number, std::sqrt(0.5), dtype);
  }
  bool is_cube(keel_value v) const {
    Product p;
    flatten(e, v, false, 0, &p);
    return is_power(p, x, 3) && near(p.number, 0.044715, dtype);
  }
  bool is_tanh_argument(keel_value v) const {
    Product p;
    flatten(e, v, false, 0, &p);
    const NodeId sum = p.values.size() == 1 ? e.made_by(p.values[0], "add") : kNone;
    if (sum == kNone || !e.single_use(p.values[0]) || !near(p.number, std::sqrt(2 / M_PI), dtype))
      return false;
    return (e.in(sum, 0) == x && is_cube(e.in(sum, 1))) || (e.in(sum, 1) == x && is_cube(e.in(sum, 0)));
  }
  // Whether v is 1 + erf(...) or 1 + tanh(...); sets which.
  bool is_gate(keel_value v, bool* tanh) const {
    const NodeId sum = e.single_use(v) ? e.made_by(v, "add") : kNone;
    for (size_t i = 0; sum != kNone && i < 2; i++) {
      const keel_value curve = e.in(sum, i);
      const NodeId n = e.producer(curve);
      if (!is_all(e, e.in(sum, 1 - i), 1) || n == kNone || !e.single_use(curve)) continue;
      *tanh = e.is(n, "tanh");
      if (*tanh ? is_tanh_argument(e.in(n, 0)) : e.is(n, "erf") && is_erf_argument(e.in(n, 0))) return true;
    }
    return false;
  }
};

bool to_gelu(Edit& e, NodeId n) {
  Product p;
  flatten(e, e.out(n), true, 0, &p);
  const Type type = e.type(e.out(n));
  if (p.values.size() != 2 || !near(p.number, 0.5, type.dtype)) return false;
  for (size_t i = 0; i < 2; i++) {
    bool tanh = false;
    const Gelu g = {e, p.values[i], type.dtype};
    if (!e.same_type(g.x, e.out(n)) || !g.is_gate(p.values[1 - i], &tanh)) continue;
    return Pattern(e, n).become("gelu", {g.x}, Attrs().flag("tanh", tanh));
  }
  return false;
}

constexpr Rule kRules[] = {{"mul", to_gelu}, {"div", to_gelu}};

}  // namespace

Rules gelu_rules() { return kRules; }

}  // namespace keel_passes
