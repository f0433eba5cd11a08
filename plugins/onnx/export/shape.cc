// shape.cc: ops that create, move and select elements without arithmetic.
#include <algorithm>
#include <limits>
#include <numeric>

#include "plugins/onnx/export/call.h"

namespace onnx_export {
namespace {

std::string one(Call& c, const std::string& size, keel_dt dtype) {  // a scalar
  const std::string number = c.add("Squeeze", {size, c.ints({0})});
  return dtype == KEEL_I64 ? number : c.cast(number, dtype);
}

void fill(Call& c) { c.give("Expand", {c.in(0), c.scope.shape(c.out_dims())}); }

void iota(Call& c) {
  const Dims dims = c.out_dims();
  const auto axis = static_cast<size_t>(c.number("axis"));
  std::string x = c.add(
      "Range", {c.scalar(KEEL_I64, 0), one(c, c.scope.size(dims[axis]), KEEL_I64), c.scalar(KEEL_I64, 1)});
  if (axis + 1 < dims.size()) {
    Ints ones(dims.size() - axis, 1);
    ones[0] = -1;
    x = c.add("Reshape", {x, c.ints(ones)});
  }
  if (c.out_dtype() != KEEL_I64) x = c.cast(x, c.out_dtype());
  if (dims.size() == 1) return c.give(x);
  c.give("Expand", {x, c.scope.shape(dims)});
}

void dim(Call& c) {
  const keel_dim d = c.number("of");
  if (!KEEL_DIM_IS_HANDLE(d) && dtype_bits(c.out_dtype()) >= 32)
    return c.give(c.scalar(c.out_dtype(), static_cast<double>(d)));
  c.give(one(c, c.scope.size(d), c.out_dtype()));
}

void reshape(Call& c) { c.give_reshaped(c.in(0)); }

void broadcast_to(Call& c) { c.give("Expand", {c.in(0), c.scope.shape(c.out_dims())}); }

void transpose(Call& c) { c.give("Transpose", {c.in(0)}, NodeAttrs().ints("perm", c.list("perm"))); }

void concat(Call& c) {
  Names in;
  for (uint32_t i = 0; i < c.n_in; i++) in.push_back(c.in(i));
  c.give("Concat", in, NodeAttrs().i("axis", c.number("axis")));
}

void split(Call& c) {
  Names out = c.scope.add_many("Split", {c.in(0), c.scope.shape(c.list("sizes"))},
                               NodeAttrs().i("axis", c.number("axis")), c.n_out);
  for (const std::string& each : out) c.give(each);
}

Ints all_axes(int64_t rank) {
  Ints axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

void slice(Call& c) {
  if (c.rank() == 0) return c.give(c.in(0));
  c.give("Slice", {c.in(0), c.scope.shape(c.list("start")), c.scope.shape(c.list("stop")),
                   c.ints(all_axes(c.rank())), c.ints(c.list("step"))});
}

// Gaps: each element gets a dim of its own, padded by the gap; the last gap is cut off.
std::string spread(Call& c, std::string x, const Dims& dims, const Ints& gap) {
  const std::string value = c.in(1);
  for (size_t axis = 0; axis < dims.size(); axis++) {
    if (gap[axis] == 0) continue;
    const auto at = static_cast<int64_t>(axis);
    const std::string n = c.scope.size(dims[axis]), wide = c.ints({gap[axis] + 1});
    x = c.add("Unsqueeze", {x, c.ints({at + 1})});
    x = c.add("Pad", {x, c.ints({0, gap[axis]}), value, c.ints({at + 1})});
    const std::string shape = c.add("Shape", {x});
    const std::string before = c.add("Slice", {shape, c.ints({0}), c.ints({at})});
    const std::string after = c.add("Slice", {shape, c.ints({at + 2}), c.ints({1 << 10})});
    const std::string whole =
        c.add("Concat", {before, c.add("Mul", {n, wide}), after}, NodeAttrs().i("axis", 0));
    x = c.add("Reshape", {x, whole}, NodeAttrs().i("allowzero", 1));
    const std::string used = c.add("Sub", {c.add("Mul", {n, wide}), c.ints({gap[axis]})});
    x = c.add("Slice", {x, c.ints({0}), c.add("Max", {used, c.ints({0})}), c.ints({at})});
  }
  return x;
}

void pad(Call& c) {
  if (c.rank() == 0) return c.give(c.in(0));
  const std::string x = spread(c, c.in(0), c.dims(), c.numbers("gap"));
  Dims pads = c.list("lo");
  const Dims hi = c.list("hi");
  pads.insert(pads.end(), hi.begin(), hi.end());
  c.give("Pad", {x, c.scope.shape(pads), c.in(1)});
}

// The size of the result is known from here on.
void trim(Call& c) {
  const std::string count = c.add("Reshape", {c.in(1), c.ints({1})});
  c.give("Slice",
         {c.in(0), c.ints({0}), c.dtype(1) == KEEL_I64 ? count : c.cast(count, KEEL_I64), c.ints({0})});
}

void reverse(Call& c) {
  const Ints axes = c.list("axes");
  if (axes.empty()) return c.give(c.in(0));
  const Ints back(axes.size(), -1), end(axes.size(), std::numeric_limits<int64_t>::min());
  c.give("Slice", {c.in(0), c.ints(back), c.ints(end), c.ints(axes), c.ints(back)});
}

void tile(Call& c) {
  if (c.rank() == 0) return c.give(c.in(0));
  c.give("Tile", {c.in(0), c.scope.shape(c.list("times"))});
}

void triangle(Call& c) {
  c.give("Trilu", {c.in(0), c.scalar(KEEL_I64, static_cast<double>(c.number("k")))},
         NodeAttrs().i("upper", c.flag("upper")));
}

constexpr Row kRows[] = {{"fill", fill},
                         {"iota", iota},
                         {"dim", dim},
                         {"reshape", reshape},
                         {"broadcast_to", broadcast_to},
                         {"transpose", transpose},
                         {"concat", concat},
                         {"split", split},
                         {"slice", slice},
                         {"pad", pad},
                         {"trim", trim},
                         {"reverse", reverse},
                         {"tile", tile},
                         {"triangle", triangle}};

}  // namespace

Rows shape_rows() { return kRows; }

}  // namespace onnx_export
