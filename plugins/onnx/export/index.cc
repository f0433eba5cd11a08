// index.cc: ops that read and write elements by index. Keel refuses indices out of range; ONNX counts
// negative ones from the end.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "plugins/onnx/export/call.h"

namespace onnx_export {
namespace {

std::string wide_index(Call& c, uint32_t i) {
  return c.dtype(i) == KEEL_I64 ? c.in(i) : c.cast(c.in(i), KEEL_I64);
}

void gather(Call& c) { c.give("Gather", {c.in(0), c.in(1)}, NodeAttrs().i("axis", c.number("axis"))); }

void gather_elements(Call& c) {
  c.give("GatherElements", {c.in(0), c.in(1)}, NodeAttrs().i("axis", c.number("axis")));
}

void check_ranks(Call& c) {
  if (c.rank(0) == 0 || c.rank(1) == 0) throw Refused{"of a scalar"};
}

void gather_nd(Call& c) {
  check_ranks(c);
  c.give("GatherND", {c.in(0), wide_index(c, 1)}, NodeAttrs().i("batch_dims", c.number("batch")));
}

void scatter_nd(Call& c) {
  check_ranks(c);
  const std::string mode = c.word("mode");
  c.give("ScatterND", {c.in(0), wide_index(c, 1), c.in(2)},
         NodeAttrs().s("reduction", mode == "set" ? "none" : mode));
}

// The dims that the indices replace go first, then ScatterND adds slices.
void scatter_add(Call& c) {
  const auto axis = static_cast<size_t>(c.number("axis"));
  const auto index_rank = static_cast<size_t>(c.rank(0)), rank = static_cast<size_t>(c.rank(1));
  Dims zeros = c.out_dims();
  std::rotate(zeros.begin(), zeros.begin() + static_cast<ptrdiff_t>(axis),
              zeros.begin() + static_cast<ptrdiff_t>(axis) + 1);
  Ints front(rank);
  std::iota(front.begin(), front.end(), 0);
  std::rotate(front.begin(), front.begin() + static_cast<ptrdiff_t>(axis),
              front.begin() + static_cast<ptrdiff_t>(axis + index_rank));
  const std::string u = axis ? c.add("Transpose", {c.in(1)}, NodeAttrs().ints("perm", front)) : c.in(1);
  const std::string rows = c.add("Unsqueeze", {wide_index(c, 0), c.ints({-1})});
  const std::string start = c.add("Expand", {c.scalar(c.out_dtype(), 0), c.scope.shape(zeros)});
  NodeAttrs add = NodeAttrs().s("reduction", "add");
  if (axis == 0) return c.give("ScatterND", {start, rows, u}, std::move(add));
  Ints back(zeros.size());
  std::iota(back.begin(), back.end(), 0);
  std::rotate(back.begin(), back.begin() + 1, back.begin() + static_cast<ptrdiff_t>(axis) + 1);
  const std::string sum = c.add("ScatterND", {start, rows, u}, std::move(add));
  c.give("Transpose", {sum}, NodeAttrs().ints("perm", back));
}

// OneHot takes negative indices from the end; here they give zeros.
void one_hot(Call& c) {
  const int64_t axis = c.number("axis"), rank = c.rank() + 1;
  const int64_t at = axis < 0 ? axis + rank : axis;
  const std::string depth = c.add("Squeeze", {c.scope.size(c.number("depth")), c.ints({0})});
  std::string classes = c.add("Range", {c.scalar(KEEL_I64, 0), depth, c.scalar(KEEL_I64, 1)});
  if (at + 1 < rank) {
    Ints ones(static_cast<size_t>(rank - at), 1);
    ones[0] = -1;
    classes = c.add("Reshape", {classes, c.ints(ones)});
  }
  const std::string i = c.add("Unsqueeze", {wide_index(c, 0), c.ints({at})});
  c.give_cast(c.add("Equal", {i, classes}));
}

// Its list is padded with rows of zeros. Without a threshold, scores may be anything but NaN.
void non_max_suppression(Call& c) {
  const auto list = [&](const std::string& x) { return c.add("Reshape", {x, c.ints({1})}); };
  const std::string most = c.add("Min", {list(wide_index(c, 2)), c.scope.size(c.number("size"))});
  Names in = {c.in(0), c.in(1), most, list(c.in(3))};
  const keel_tensor low = c.scope.type(c.in_value(4));
  const auto* known = static_cast<const float*>(low.data ? keel_ptr(&low) : nullptr);
  if (!known) {
    const std::string none = c.scalar(KEEL_F32, -HUGE_VAL);
    in.push_back(list(c.add("Where", {c.add("IsNaN", {c.in(4)}), none, c.in(4)})));
  } else if (!std::isnan(*known)) {
    in.push_back(list(c.in(4)));
  }
  const std::string found =
      c.add("NonMaxSuppression", in, NodeAttrs().i("center_point_box", c.flag("center")));
  const std::string count = c.add("Shape", {found}, NodeAttrs().i("start", 0).i("end", 1));
  const std::string rest = c.add("Sub", {c.scope.size(c.out_dims()[0]), count});
  const std::string pads = c.add("Concat", {c.ints({0, 0}), rest, c.ints({0})}, NodeAttrs().i("axis", 0));
  c.give("Pad", {found, pads, c.scalar(KEEL_I64, 0)});
  c.give("Squeeze", {count, c.ints({0})});
}

constexpr Row kRows[] = {{"non_max_suppression", non_max_suppression},
                         {"gather", gather},
                         {"gather_elements", gather_elements},
                         {"gather_nd", gather_nd},
                         {"scatter_nd", scatter_nd},
                         {"scatter_add", scatter_add},
                         {"one_hot", one_hot}};

}  // namespace

Rows index_rows() { return kRows; }

}  // namespace onnx_export
