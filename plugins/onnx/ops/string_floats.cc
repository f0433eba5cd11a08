// string_floats.cc: Cast of strings to floats in the run: a sign, digits with a point, an exponent; inf and
// nan.
//
// The digits are summed up in f64, which is exact for up to 15 of them, and then multiplied or divided by a
// power of ten, which is exact up to 10^22: such numbers are the nearest f64. Others may be 2 units off.
#include <cmath>

#include "plugins/onnx/ops/classes.h"

namespace onnx_import {
namespace {

constexpr int64_t kPowers = 309;  // 10^0 to 10^308

Term power_of_ten(const Term& exponent) {
  std::vector<double> powers;
  for (int64_t k = 0; k < kPowers; k++) powers.push_back(std::stod(cat("1e", k)));
  return constant_of(exponent.edit(), KEEL_F64, powers)
      .gather(exponent.clamp(0, static_cast<double>(kPowers - 1)), 0);
}

Term count(const Term& flags) { return flags.to(KEEL_I64).sum({1}, true); }

// Of the rows [k, width], as columns [k, 1].
struct Literal {
  Term number, fine;
};

Literal literal(const Term& text) {
  Edit& e = text.edit();
  const Term place = counting_term(e, text.dim(1), KEEL_I64), length = byte_counts(text).unsqueeze(1);
  const Term digit = (text > 47) & (text < 58), is_point = text == 46, is_e = text == 101;
  const auto place_of = [&](const Term& flags, const Term& otherwise) {
    return select(count(flags) == 0, otherwise, select(flags, place, 0.0).sum({1}, true));
  };
  const Term end = place_of(is_e, length),
             point = place_of(is_point, end);  // of the digits; before the point
  const auto signs_at = [&](const Term& at) { return (place == at) & ((text == 43) | (text == 45)); };
  const Term first_sign = signs_at(place.n(0)),
             second_sign = signs_at(end + 1) & is_e.reduced("reduce_max", {1}, true);
  const Term worth = text.to(KEEL_F64) - 48, own = digit & (place < end), later = digit & (place > end);
  const Term power = end - 1 - place - ((place < point) & (point < end)).to(KEEL_I64);
  const Term digits = select(own, worth * power_of_ten(power), 0.0).sum({1}, true);
  const Term grown =
      select(later, worth * power_of_ten(length - 1 - place), 0.0).sum({1}, true).op("minimum", 1e6);
  const Term falls = count(second_sign & (text == 45)) > 0;
  const Term exponent = select(falls, -grown, grown).to(KEEL_I64) - (end - point - 1).op("maximum", 0);
  const Term size = select(digits == 0, digits, scaled(digits, exponent));
  const Term known = digit | is_point | is_e | first_sign | second_sign | place.op("greater_equal", length);
  const Term fine = known.reduced("reduce_min", {1}, true) & (count(is_point) < 2) & (count(is_e) < 2) &
                    (point.op("less_equal", end)) & (count(own) > 0) &
                    (count(own) < static_cast<double>(kPowers)) & ((end == length) | (count(later) > 0));
  const Term minus = count(first_sign & (text == 45)) > 0;
  return {select(minus, -size, size), fine};
}

Term equals(const Term& text, const std::string& word) {
  const std::vector<double> bytes(word.begin(), word.end());
  return same_bytes(text, stored(text.edit(), KEEL_I32, {1, std::ssize(bytes)}, bytes).to(KEEL_U8))
      .unsqueeze(1);
}

}  // namespace

Term scaled(const Term& x, const Term& exponent) {
  const Term more = exponent.op("maximum", 0), less = (-exponent).op("maximum", 0);
  const double last = static_cast<double>(kPowers - 1);
  return x * power_of_ten(more) * power_of_ten(more - last) / power_of_ten(less) / power_of_ten(less - last);
}

Term floats_of(Call& c, const Term& rows) {
  Edit& e = rows.edit();
  const Term padded = fitted(rows, e.add(rows.dim(1), 1));
  const Term text = select((padded > 64) & (padded < 91), padded + 32, padded);
  const auto [number, fine] = literal(text);
  const Term up =
      equals(text, "inf") | equals(text, "+inf") | equals(text, "infinity") | equals(text, "+infinity");
  const Term down = equals(text, "-inf") | equals(text, "-infinity");
  const Term none = equals(text, "nan") | equals(text, "+nan") | equals(text, "-nan");
  (fine | up | down | none)
      .reduced("reduce_min", {0, 1})
      .demand(
          cat(c.title(), ": a string is no number; expected digits, a point and an exponent, or inf or nan"));
  const Term special = select(none, static_cast<double>(NAN), select(down, -HUGE_VAL, number.n(HUGE_VAL)));
  return select(up | down | none, special, number).reshape({rows.dim(0)});
}

}  // namespace onnx_import
