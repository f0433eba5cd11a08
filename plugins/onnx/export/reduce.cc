// reduce.cc: reductions, the indices of extremes, running sums, the largest elements.
#include <cmath>
#include <limits>

#include "plugins/onnx/export/call.h"

namespace onnx_export {
namespace {

// One reduction of x, in any dtype.
std::string reduced(Call& c, const char* op, const std::string& x, const Ints& axes, bool keep) {
  return c.add(op, {x, c.ints(axes)}, NodeAttrs().i("keepdims", keep));
}

// The operand in a dtype that the reductions take.
std::string widened(Call& c, keel_dt* wide) {
  *wide = wide_dtype(c.dtype());
  return *wide == c.dtype() ? c.in(0) : c.cast(c.in(0), *wide);
}

void give_narrowed(Call& c, const std::string& x, keel_dt wide) {
  if (wide == c.out_dtype()) return c.give(x);
  c.give_cast(x);
}

// Where a reduced element is NaN. Of no elements the maximum is below 0.
std::string any_nan(Call& c, const std::string& x, const Ints& axes, bool keep) {
  const std::string nan = c.cast(c.add("IsNaN", {x}), KEEL_I32);
  return c.add("Greater", {reduced(c, "ReduceMax", nan, axes, keep), c.scalar(KEEL_I32, 0)});
}

// Integers wrap in Keel, and saturate in some runtimes: the sum of those below 64 bits is exact in 64.
void reduce_wrapping(Call& c) {
  const Ints axes = c.list("axes");
  const keel_dt t = c.dtype();
  if (axes.empty()) return c.give(c.in(0));
  if (is_float(t) || dtype_bits(t) == 64)
    return c.give(c.row->onnx, {c.in(0), c.ints(axes)}, NodeAttrs().i("keepdims", c.flag("keep")));
  c.give_cast(reduced(c, c.row->onnx, c.cast(c.in(0), KEEL_I64), axes, c.flag("keep")));
}

// Without axes nothing is reduced; in ONNX that may mean all.
void reduce(Call& c) {
  const Ints axes = c.list("axes");
  if (axes.empty()) return c.give(c.in(0));
  keel_dt wide;
  const std::string x = widened(c, &wide);
  if (wide == c.dtype())
    return c.give(c.row->onnx, {x, c.ints(axes)}, NodeAttrs().i("keepdims", c.flag("keep")));
  c.give_cast(reduced(c, c.row->onnx, x, axes, c.flag("keep")));
}

// Of no elements, that of the narrow dtype and not of the dtype computed in.
void integer_extreme(Call& c, const Ints& axes) {
  keel_dt wide;
  const std::string x = widened(c, &wide);
  if (wide == c.dtype())
    return c.give(c.row->onnx, {x, c.ints(axes)}, NodeAttrs().i("keepdims", c.flag("keep")));
  const std::string found = reduced(c, c.row->onnx, x, axes, c.flag("keep"));
  if (c.dtype() == KEEL_BOOL) return c.give("Greater", {found, c.scalar(wide, 0)});
  const double range = std::ldexp(1.0, dtype_bits(c.dtype())),
               least = is_unsigned(c.dtype()) ? 0 : -range / 2;
  const std::string high = c.add("Min", {found, c.scalar(wide, least + range - 1)});
  c.give_cast(c.add("Max", {high, c.scalar(wide, least)}));
}

// ONNX does not say that NaN wins, and its runtimes differ.
void reduce_extreme(Call& c) {
  const Ints axes = c.list("axes");
  const keel_dt t = c.dtype();
  if (!axes.empty() && !is_float(t)) return integer_extreme(c, axes);
  if (axes.empty()) return reduce(c);
  const std::string x = c.in(0), any = any_nan(c, x, axes, c.flag("keep"));
  const std::string nan = c.scalar(t, std::numeric_limits<double>::quiet_NaN());
  c.give("Where", {any, nan, reduced(c, c.row->onnx, x, axes, c.flag("keep"))});
}

// ONNX leaves the rounding of integers and the mean of no elements open.
void reduce_mean(Call& c) {
  const Ints axes = c.list("axes");
  bool some = true;
  for (const Dims dims = c.dims(); int64_t axis : axes) some &= dims[static_cast<size_t>(axis)] > 0;
  if (axes.empty() || (is_float(c.dtype()) && some)) return reduce(c);
  keel_dt wide;
  const std::string sum = reduced(c, "ReduceSum", widened(c, &wide), axes, c.flag("keep"));
  std::string count = c.ints({1});
  const Dims dims = c.dims();
  for (int64_t axis : axes) count = c.add("Mul", {count, c.scope.size(dims[static_cast<size_t>(axis)])});
  if (wide != KEEL_I64) count = c.cast(count, wide);
  give_narrowed(c, c.add("Div", {sum, c.add("Squeeze", {count, c.ints({0})})}), wide);
}

// The first (last) NaN, if there is one, is the extreme; ONNX does not say so.
void extreme(Call& c) {
  keel_dt t = c.dtype();
  std::string x = c.in(0);
  if (dtype_bits(t) == 16) x = c.cast(x, t = is_float(t) ? KEEL_F32 : KEEL_I32);
  const int64_t axis = c.number("axis");
  auto attrs = [&] {
    return NodeAttrs().i("axis", axis).i("keepdims", 0).i("select_last_index", c.flag("last"));
  };
  if (!is_float(t)) return c.give(c.row->onnx, {x}, attrs());
  const std::string plain = c.add(c.row->onnx, {x}, attrs());
  const std::string nan = c.cast(c.add("IsNaN", {x}), KEEL_I32);
  c.give("Where", {any_nan(c, x, {axis}, false), c.add("ArgMax", {nan}, attrs()), plain});
}

}  // namespace

void running(Call& c) {
  keel_dt wide;
  const std::string x = widened(c, &wide);
  const Names in = {x, c.scalar(KEEL_I64, static_cast<double>(c.number("axis")))};
  NodeAttrs attrs = NodeAttrs().i("exclusive", c.flag("exclusive")).i("reverse", c.flag("reverse"));
  if (wide == c.dtype()) return c.give(c.row->onnx, in, std::move(attrs));
  c.give_cast(c.add(c.row->onnx, in, std::move(attrs)));
}

namespace {

// NaN counts as the largest, which ONNX leaves open: it is sorted as infinity, so only their order may
// differ.
void top_k(Call& c) {
  keel_dt wide;
  const bool largest = c.flag("largest");
  std::string x = widened(c, &wide);
  if (dtype_bits(wide) == 16) x = c.cast(x, wide = KEEL_F32);
  std::string key = x;
  if (is_float(wide))
    key = c.add("Where", {c.add("IsNaN", {x}), c.scalar(wide, std::numeric_limits<double>::infinity()), x});
  NodeAttrs attrs = NodeAttrs().i("axis", c.rank() - 1).i("largest", largest).i("sorted", 1);
  const Names out = c.scope.add_many("TopK", {key, c.scope.size(c.number("k"))}, std::move(attrs), 2);
  const std::string found =
      is_float(wide) ? c.add("GatherElements", {x, out[1]}, NodeAttrs().i("axis", c.rank() - 1)) : out[0];
  give_narrowed(c, found, wide);
  c.give(out[1]);
}

constexpr Row kRows[] = {{"reduce_sum", reduce_wrapping, "ReduceSum"},
                         {"reduce_mean", reduce_mean, "ReduceMean"},
                         {"reduce_prod", reduce_wrapping, "ReduceProd"},
                         {"reduce_max", reduce_extreme, "ReduceMax"},
                         {"reduce_min", reduce_extreme, "ReduceMin"},
                         {"arg_max", extreme, "ArgMax"},
                         {"arg_min", extreme, "ArgMin"},
                         {"cumsum", running, "CumSum"},
                         {"top_k", top_k}};

}  // namespace

Rows reduce_rows() { return kRows; }

}  // namespace onnx_export
