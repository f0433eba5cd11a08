// string_numbers.cc: Cast between strings and integers, and of constants to floats.
#include "plugins/onnx/import/number.h"
#include "plugins/onnx/ops/classes.h"

namespace onnx_import {
namespace {

constexpr int64_t kDigits = 19;  // of the largest i64

Ints powers_of_ten() {
  Ints powers = {1};
  while (std::ssize(powers) < kDigits) powers.push_back(powers.back() * 10);
  return powers;
}

// The rows u8[k, width] as i64[k]: a sign and 1 to 18 digits.
Term parsed(Call& c, const Term& rows) {
  Edit& e = rows.edit();
  const Term padded = fitted(rows, e.add(rows.dim(1), 1)), first = padded.slice(1, 0, 1).reshape({-1});
  const Term negative = first == 45, sign = negative | (first == 43), length = byte_counts(padded);
  const Term place = counting_term(e, padded.dim(1), KEEL_I64), inside = place < length.unsqueeze(1);
  const Term is_sign = (place == 0) & sign.unsqueeze(1);
  const Term digit = (padded > 47) & (padded < 58), digits = length - sign.to(KEEL_I64);
  const Term fine = (digit | is_sign | inside.op("logical_not")).reduced("reduce_min", {1}) & (digits > 0) &
                    (digits < static_cast<double>(kDigits));
  const Term power = (length.unsqueeze(1) - place - 1).clamp(0, static_cast<double>(kDigits - 1));
  const Term worth = padded.to(KEEL_I64) - 48;
  const Term terms = select(inside & digit, worth * constant_of(e, powers_of_ten()).gather(power, 0), 0.0);
  const Term size = terms.sum({1});
  fine.reduced("reduce_min", {0})
      .demand(cat(c.title(), ": a string is no integer; expected 1 to 18 digits, after a sign or none"));
  return select(negative, -size, size);
}

// i64[dims..] as u8[dims.., 20]. Of negative numbers the remainders
// are negated: the smallest has no negation.
Term written(const Term& x) {
  Edit& e = x.edit();
  const Term powers = constant_of(e, powers_of_ten()).op("reverse"), column = x.unsqueeze(x.rank());
  const Term digits = (column / powers).op("rem", 10).op("abs");  // [dims.., 19], the first one first
  const auto last = static_cast<int64_t>(x.rank());
  const Term place = counting_term(e, kDigits, KEEL_I64);
  const Term leading = select(digits == 0, static_cast<double>(kDigits - 1), place)
                           .reduced("reduce_min", {last}, true);  // the first digit; of 0 the last place
  const Term minus = (column < 0).to(KEEL_I64);
  const Term at = counting_term(e, kDigits + 1, KEEL_I64), from = at + leading - minus;
  Dims wide = digits.dims();
  wide.back() = kDigits + 1;
  const Term index = from.clamp(0, static_cast<double>(kDigits - 1)).broadcast(wide);
  const Term picked = digits.op("gather_elements", index, Attrs().i("axis", last)) + 48;
  const Term text = select((minus > 0) & (at == 0), 45.0, picked);
  return select(from < static_cast<double>(kDigits), text, 0.0).to(KEEL_U8);
}

double parsed_number(Call& c, const std::string& word) {
  const bool plus = !word.empty() && word[0] == '+';
  const auto number = number_in<double>(std::string_view(word).substr(plus));
  if (!number) c.invalid(cat("its operand has the string '", word, "'; expected a number"));
  return *number;
}

// The strings of a constant as floats, the nearest ones.
Term parsed_constant(Call& c, const Data* bytes, keel_dt to) {
  const auto width = static_cast<size_t>(bytes->dims[1]);
  std::vector<double> numbers;
  for (size_t at = 0; at < bytes->size; at += width) {
    const std::string row(reinterpret_cast<const char*>(bytes->bytes) + at, width);
    numbers.push_back(parsed_number(c, row.substr(0, row.find('\0'))));
  }
  return constant_of(c.e, KEEL_F64, numbers).to(to);
}

}  // namespace

void cast_to_strings(Call& c) {
  if (holds_strings(c, 0)) return c.alias(0, 0);
  const Term x(c, 0);
  if (is_half(x.dtype()) || x.dtype() == KEEL_F32 || x.dtype() == KEEL_F64)
    return give_strings(c, 0, text_of_floats(x));
  if (!is_integer(x.dtype()) || x.dtype() == KEEL_U64)
    c.unsupported(
        cat(dtype_name(x.dtype()), " to strings; integers of up to i64, f16, bf16, f32 and f64 can be cast"));
  give_strings(c, 0, written(x.to(KEEL_I64)));
}

void cast_from_strings(Call& c, keel_dt to) {
  const Strings x(c, 0);
  if (is_float(to)) {
    const Data* known = c.e.data(*c.value(0).table);
    return c.set(0, x.spread(known ? parsed_constant(c, known, to) : floats_of(c, x.rows()).to(to)).v);
  }
  if (!is_integer(to)) c.unsupported(cat("strings to ", dtype_name(to)));
  c.set(0, x.spread(parsed(c, x.rows())).to(to).v);
}

}  // namespace onnx_import
