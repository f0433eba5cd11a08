// trigonometry.cc: Asin, Acos, Atan from ops of the catalogue.
//
// The arc tangent is Cephes' (Moshier 1989): an argument above 0.66 is turned by 45 or 90 degrees, then a
// rational function of its square, exact to the last places of f64.
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

constexpr double kQuarter = 0.78539816339744830962, kTurn = 2.41421356237309504880;  // pi / 4, tan(3 pi / 8)

Term polynomial(const Term& z, std::initializer_list<double> coefficients) {
  Term sum = z.n(*coefficients.begin());
  for (auto at = coefficients.begin() + 1; at != coefficients.end(); ++at) sum = sum * z + *at;
  return sum;
}

Term atan_of(const Term& x) {
  const Term a = x.op("abs"), far = a > kTurn, middle = a > 0.66;
  const Term t = select(far, -(1.0 / a), select(middle, (a - 1) / (a + 1), a)), z = t * t;
  const Term p =
      polynomial(z, {-8.750608600031904122785E-1, -1.615753718733365076637E1, -7.500855792314704667340E1,
                     -1.228866684490136173410E2, -6.485021904942025371773E1});
  const Term q =
      polynomial(z, {1, 2.485846490142306297962E1, 1.650270098316988542046E2, 4.328810604912902668951E2,
                     4.853903996359136964868E2, 1.945506571482613964425E2});
  const Term base = select(far, x.n(2 * kQuarter), select(middle, x.n(kQuarter), x.n(0)));
  const Term y = base + (t * (z * p / q) + t);
  return select(x < 0, -y, select(x == 0, x, y));  // -0 stays
}

template <Term (*formula)(const Term&)>
void apply(Call& c) {
  const Term x(c, 0);
  if (!is_float(x.dtype())) c.invalid(cat("its operand is ", dtype_name(x.dtype()), "; expected floats"));
  c.set(0, formula(x.to(wide(x.dtype()))).to(x.dtype()).v);
}

// Products of 1 - x and 1 + x lose no digits near 1.
Term asin_of(const Term& x) { return atan_of(x / ((1.0 - x) * (1.0 + x)).op("sqrt")); }
Term acos_of(const Term& x) { return atan_of(((1.0 - x) / (1.0 + x)).op("sqrt")) * 2; }

constexpr Rule kRules[] = {
    {"Asin", 7, apply<asin_of>},
    {"Acos", 7, apply<acos_of>},
    {"Atan", 7, apply<atan_of>},
};

}  // namespace

Rules trigonometry_rules() { return kRules; }

}  // namespace onnx_import
