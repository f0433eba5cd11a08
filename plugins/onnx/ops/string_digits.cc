// string_digits.cc: Cast of floats to strings in the run: up to 8 digits as C's %.8g writes them, INF and
// NaN. The digits come from string_decimal.cc.
#include <cmath>

#include "plugins/onnx/ops/classes.h"

namespace onnx_import {
namespace {

constexpr int64_t kDigits = 8, kWidth = 15;  // -0.00012345678, -1.2345678e-300
constexpr double kLast = kDigits - 1;

// i64[dims..] as its decimal digits, the first one first.
Term digits_of(const Term& number) {
  Ints powers = {1};
  while (std::ssize(powers) < kDigits) powers.insert(powers.begin(), powers.front() * 10);
  return (number.unsqueeze(number.rank()) / constant_of(number.edit(), powers)).op("rem", 10);
}

Term either(const Term& p) { return p.to(KEEL_I64); }

// The bytes of finite numbers, f64[dims..] without their signs.
Term unsigned_text(const Term& x, const Term& minus, bool is_f64) {
  Edit& e = x.edit();
  const auto [number, power] = decimal_of(x, is_f64);
  const auto last = static_cast<int64_t>(x.rank());
  const Term digits = digits_of(number), exponent = power.unsqueeze(x.rank());
  const Term place = counting_term(e, kDigits, KEEL_I64);
  const Term count = select(digits == 0, 1.0, place + 1).reduced("reduce_max", {last}, true);
  const Term scientific = (exponent < -4) | (exponent > kLast);
  const Term zeros = select(scientific, 0.0, (-exponent).op("maximum", 0));   // in front of the digits
  const Term whole = select(scientific, 1.0, exponent.op("maximum", 0) + 1);  // digits before the point
  const Term n = (zeros + count).op("maximum", whole), length = n + either(n > whole);
  const Term at = counting_term(e, kWidth, KEEL_I64) - minus;
  const Term nth = at - either(at > whole) - zeros;
  Dims wide = digits.dims();
  wide.back() = kWidth;
  const Term index = nth.clamp(0, kLast).broadcast(wide);
  const Term digit = select(nth < 0, 0.0, digits.op("gather_elements", index, Attrs().i("axis", last))) + 48;
  const Term mantissa = select(at == whole, 46.0, digit), rest = at - length, size = exponent.op("abs");
  const Term sign = select(exponent < 0, 45.0, exponent.n(43));
  const Term long_one = either(size > 99), nth_digit = (long_one - rest + 3).clamp(0, 2);
  const Term tail_digit = (size / constant_of(e, {1, 10, 100}).gather(nth_digit, 0)).op("rem", 10) + 48;
  const Term tail = select(rest == 0, 101.0, select(rest == 1, sign, tail_digit));
  const Term end = length + either(scientific) * (long_one + 4);
  return select(at < 0, 45.0, select(at < length, mantissa, select(at < end, tail, 0.0))).to(KEEL_U8);
}

Term word(Edit& e, const std::string& text) {
  std::vector<double> bytes(text.begin(), text.end());
  bytes.resize(kWidth);
  return stored(e, KEEL_I32, {kWidth}, bytes).to(KEEL_U8);
}

}  // namespace

Term text_of_floats(const Term& given) {
  const bool is_f64 = given.dtype() == KEEL_F64;
  const Term x = given.to(KEEL_F64);
  Edit& e = x.edit();
  const Term size = x.op("abs"), infinite = size == HUGE_VAL, nan = x.op("not_equal", x);
  const Term negative = (x < 0) | ((x == 0) & ((x.n(1) / x) < 0));
  const auto each = [&](const Term& p) { return p.unsqueeze(x.rank()); };
  const Term text = unsigned_text(select(infinite | nan, 0.0, size), either(each(negative)), is_f64);
  const auto same = [&](const char* given) { return word(e, given).broadcast(text.dims()); };
  return select(each(nan), same("NaN"),
                select(each(infinite), select(each(negative), same("-INF"), same("INF")), text));
}

}  // namespace onnx_import
