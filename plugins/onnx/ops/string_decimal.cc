// string_decimal.cc: the first eight decimal digits of floats, rounded exactly, ties to even.
//
// A float is m * 2^e. A table has each power of two as L * 10^k with an L of 45 digits, in five parts of
// nine. The product of m and L is computed in such parts, in i64. L is exact for e from -64 to 149, which
// includes all floats halfway between two results: these are n / 2^j with an n * 5^j of nine digits, or below
// 10^31.
#include <array>

#include "plugins/onnx/ops/classes.h"

namespace onnx_import {
namespace {

constexpr int64_t kPart = 1000000000, kPartDigits = 9, kParts = 5, kColumns = kParts + 1;
constexpr int64_t kFractionBits = 52, kBias = 1075;  // of f64: m has 53 bits, and e is the exponent - kBias

std::string text_of(const std::vector<uint64_t>& parts) {
  std::string text;
  for (size_t k = parts.size(); k-- > 0;) {
    const std::string digits = std::to_string(parts[k]);
    text += std::string(k + 1 == parts.size() ? 0 : kPartDigits - digits.size(), '0') + digits;
  }
  return text;
}

void multiply(std::vector<uint64_t>& parts, uint64_t by) {
  uint64_t carry = 0;
  for (uint64_t& part : parts) {
    carry += part * by;
    part = carry % kPart;
    carry /= kPart;
  }
  if (carry) parts.push_back(carry);
}

using PowerRow = std::array<int64_t, kColumns>;  // L from its first digits on, k

PowerRow row_of(std::string digits, int64_t shift) {
  constexpr int64_t kWhole = kParts * kPartDigits;
  PowerRow row = {};
  row[kParts] = std::ssize(digits) - kWhole + shift;
  digits.resize(kWhole, '0');
  for (size_t k = 0; k < kParts; k++) row[k] = std::stoll(digits.substr(k * kPartDigits, kPartDigits));
  return row;
}

// The rows of 2^first to 2^last, for first < 0 < last; 2^-n is 5^n * 10^-n.
Ints powers_of_two(int64_t first, int64_t last) {
  std::vector<PowerRow> rows(static_cast<size_t>(last - first + 1));
  const auto fill = [&](int64_t steps, int64_t way, uint64_t by) {
    std::vector<uint64_t> parts = {1};
    for (int64_t n = 0; n <= steps; n++, multiply(parts, by))
      rows[static_cast<size_t>(way * n - first)] = row_of(text_of(parts), way < 0 ? -n : 0);
  };
  fill(last, 1, 2);
  fill(-first, -1, 5);
  Ints flat;
  for (const PowerRow& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

// m and L as parts, the most significant one first; together with 10^k.
struct Product {
  std::vector<Term> parts;  // two more than L has
  Term k;
};

Product product_of(const Term& x, bool wide) {
  const int64_t first = wide ? 1 - kBias : -202, last = wide ? 2046 - kBias : 76;  // or of f32
  const Term bits = x.op("bit_cast", Attrs().dtype("to", KEEL_I64));
  const double unit = static_cast<double>(int64_t{1} << kFractionBits);
  const Term exponent = bits / bits.n(unit), fraction = bits.op("rem", unit);
  const Term m = fraction + (exponent > 0).to(KEEL_I64) * unit, e = exponent.op("maximum", 1) - kBias;
  const Term rows = constant_of(x.edit(), powers_of_two(first, last)).reshape({last - first + 1, kColumns});
  const Term row =
      rows.gather((e - static_cast<double>(first)).clamp(0, static_cast<double>(last - first)), 0);
  const auto column = [&](int64_t k) { return row.slice(x.rank(), k, k + 1).reshape(x.dims()); };
  const Term high = m / m.n(kPart), low = m.op("rem", kPart);
  std::vector<Term> parts = {high * column(0)};
  for (int64_t k = 1; k < kParts; k++) parts.push_back(high * column(k) + low * column(k - 1));
  parts.push_back(low * column(kParts - 1));
  for (size_t k = parts.size() - 1; k > 0; k--) {
    parts[k - 1] = parts[k - 1] + parts[k] / parts[k].n(kPart);
    parts[k] = parts[k].op("rem", kPart);
  }
  parts.insert(parts.begin(), parts[0] / parts[0].n(kPart));
  parts[1] = parts[1].op("rem", kPart);
  return {parts, column(kParts)};
}

// Removes leading parts that are 0, at most `most`; adds them to the count.
Term without_zeros(std::vector<Term>& parts, int most) {
  Term count = parts[0] * 0;
  for (int k = 0; k < most; k++) {
    const Term none = parts[0] == 0;
    for (size_t i = 0; i + 1 < parts.size(); i++) parts[i] = select(none, parts[i + 1], parts[i]);
    parts.back() = select(none, 0.0, parts.back());
    count = count + none.to(KEEL_I64);
  }
  return count;
}

}  // namespace

Decimal decimal_of(const Term& x, bool wide) {
  const Term one = select(x == 0, 1.0, x);
  auto [parts, k] = product_of(one, wide);
  const Term removed = without_zeros(parts, 2);
  Ints powers = {1};
  while (std::ssize(powers) <= kPartDigits + 1) powers.push_back(powers.back() * 10);
  const Term table = constant_of(x.edit(), powers);
  Term size = parts[0] * 0;  // digits of the first part
  for (int64_t n = 0; n < kPartDigits; n++)
    size =
        size + parts[0].op("greater_equal", static_cast<double>(powers[static_cast<size_t>(n)])).to(KEEL_I64);
  const Term front = parts[0] * kPart + parts[1], unit = table.gather(size + 1, 0);
  const Term cut = front / unit, rest = front.op("rem", unit) * 2;
  Term more = parts[2];  // not 0 if anything follows
  for (size_t i = 3; i < parts.size(); i++) more = more + parts[i];
  const Term up = (rest > unit) | ((rest == unit) & ((more > 0) | (cut.op("rem", 2) == 1)));
  const Term digits = cut + up.to(KEEL_I64), full = digits.op("greater_equal", 1e8);
  const Term exponent =
      k + size + full.to(KEEL_I64) - removed * kPartDigits + ((kParts + 1) * kPartDigits - 1);
  const Term zero = x == 0;
  return {select(zero, 0.0, select(full, digits / digits.n(10), digits)), select(zero, 0.0, exponent)};
}

}  // namespace onnx_import
