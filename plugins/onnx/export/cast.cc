// cast.cc: Cast, which in ONNX is undefined where a float does not fit an integer.
#include <cmath>
#include <cstring>
#include <limits>

#include "plugins/onnx/export/call.h"
#include "sdk/cpp/keel/storage.hpp"

namespace onnx_export {
namespace {

bool is_integer(keel_dt t) { return (t & 0xff) < 2; }

// A power of two as a bound for floats of the dtype. The larger ones are infinite in f16.
double reachable(keel_dt t, double limit) {
  return t == KEEL_F16 && limit > 65504 ? std::numeric_limits<double>::infinity() : limit;
}

// The bytes of the dtype's largest integer, which a double may not hold.
std::string largest(keel_dt t) {
  std::string bytes(static_cast<size_t>(dtype_bits(t)) / 8, static_cast<char>(0xff));
  if (!is_unsigned(t)) bytes.back() = 0x7f;
  return bytes;
}

// Truncates, saturates, and maps NaN to 0, as Keel does: only floats in range reach Cast's result. Integers
// of less than a byte go through one.
void to_integer(Call& c, keel_dt from, keel_dt to) {
  const bool packed = keel::is_storage(to);
  const keel_dt t = !packed ? to : is_unsigned(to) ? keel_dt{KEEL_U8} : keel_dt{KEEL_I8};
  const double above = std::ldexp(1.0, dtype_bits(to) - !is_unsigned(to)),
               below = is_unsigned(to) ? 0 : -above;
  const std::string x = c.in(0), zero = c.scalar(t, 0), least = c.scalar(t, below);
  const std::string most =
      packed ? c.scalar(t, above - 1) : c.scope.model().tensor("largest", t, {}, largest(t), false);
  const std::string high = c.add("GreaterOrEqual", {x, c.scalar(from, reachable(from, above))});
  const std::string low = c.add("Less", {x, c.scalar(from, -reachable(from, -below))});
  const std::string out = c.add("Or", {c.add("IsNaN", {x}), c.add("Or", {high, low})});
  const std::string safe = c.add("Where", {out, c.scalar(from, 0), x});
  const std::string ends = c.add("Where", {high, most, c.add("Where", {low, least, zero})});
  if (!packed) return c.give("Where", {out, ends, c.cast(safe, t)});
  c.give_cast(c.add("Where", {out, ends, c.cast(safe, t)}));
}

void cast(Call& c) {
  const keel_dt from = c.dtype(), to = c.out_dtype();
  if (from == to) return c.give(c.in(0));
  if (is_float(from) && is_integer(to)) return to_integer(c, from, to);
  c.scope.model().need(from);
  c.scope.model().need(to);
  NodeAttrs attrs = NodeAttrs().i("to", element_type(to));
  if (to == KEEL_F8E8M0) std::move(attrs).s("round_mode", c.word("round"));
  const bool narrow = keel::is_storage(to) && !is_integer(to) && to != KEEL_F4E2M1;
  if (narrow && !c.flag("saturate")) std::move(attrs).i("saturate", 0);
  c.give("Cast", {c.in(0)}, std::move(attrs));
}

void bit_cast(Call& c) {
  if (c.dtype() == c.out_dtype()) return c.give(c.in(0));
  c.scope.model().need(int64_t{26});
  c.give("BitCast", {c.in(0)}, NodeAttrs().i("to", element_type(c.out_dtype())));
}

void same(Call& c) { c.give(c.in(0)); }

constexpr Row kRows[] = {{"cast", cast}, {"bit_cast", bit_cast}, {"identity", same}, {"stop_gradient", same}};

}  // namespace

Rows cast_rows() { return kRows; }

}  // namespace onnx_export
