// fold_moves.cc: folds that only move elements: Gather, Slice, Concat, Reshape and similar ops.
//
// Each fold computes the source index of every result element; take() applies the list.
#include <algorithm>

#include "plugins/onnx/import/fold.h"
#include "plugins/onnx/ops/slice.h"

namespace onnx_import {
namespace {

using SourceIndices = std::vector<size_t>;

size_t count_of(const Ints& shape) {
  size_t n = 1;
  for (int64_t d : shape) n *= static_cast<size_t>(d);
  return n;
}

bool take(Call& c, size_t k, const Sizes& x, Ints shape, const SourceIndices& places) {
  Sizes out = {x.dtype, std::move(shape), {}};
  for (size_t place : places) out.v.push_back(x.v[place]);
  c.set(k, std::move(out));
  return true;
}

// Source indices of the elements [outer, picks, inner] of an array whose middle axis has n elements.
SourceIndices along(const Ints& shape, int64_t axis, const std::vector<size_t>& picks) {
  const size_t outer = count_of(Ints(shape.begin(), shape.begin() + axis));
  const size_t inner = count_of(Ints(shape.begin() + axis + 1, shape.end()));
  const auto n = static_cast<size_t>(shape[static_cast<size_t>(axis)]);
  SourceIndices places;
  for (size_t o = 0; o < outer; o++)
    for (size_t pick : picks)
      for (size_t i = 0; i < inner; i++) places.push_back((o * n + pick) * inner + i);
  return places;
}

bool all_numbers(const Sizes* s) {
  return s && std::none_of(s->v.begin(), s->v.end(), [](keel_dim d) { return KEEL_DIM_IS_HANDLE(d); });
}

bool fold_gather(Call& c) {
  const Sizes *x = c.known(0), *index = c.known(1);
  if (!x || x->shape.empty() || !all_numbers(index)) return false;
  const int64_t axis = c.axis(c.i("axis", 0), static_cast<int64_t>(x->shape.size()));
  const int64_t n = x->shape[static_cast<size_t>(axis)];
  std::vector<size_t> picks;
  for (int64_t i : index->v) {
    if (i < -n || i >= n) c.invalid(cat("index ", i, " is not in [", -n, ", ", n, ")"));
    picks.push_back(static_cast<size_t>(i < 0 ? i + n : i));
  }
  Ints shape(x->shape.begin(), x->shape.begin() + axis);
  shape.insert(shape.end(), index->shape.begin(), index->shape.end());
  shape.insert(shape.end(), x->shape.begin() + axis + 1, x->shape.end());
  const SourceIndices places = along(x->shape, axis, picks);
  return places.size() <= kMostFolded && take(c, 0, *x, shape, places);
}

// Starts, ends, axes and steps are operands from opset 10 on, attributes before.
bool slice_operand(Call& c, size_t i, const char* attribute, Ints* out) {
  if (c.opset < 10) {
    *out = c.ints(attribute);
    return true;
  }
  if (!c.has(i)) return true;
  const Sizes* s = c.known(i);
  if (!all_numbers(s)) return false;
  *out = s->v;
  return true;
}

bool fold_slice(Call& c) {
  const Sizes* x = c.known(0);
  Ints starts, ends, axes, steps;
  if (!x || !slice_operand(c, 1, "starts", &starts) || !slice_operand(c, 2, "ends", &ends)) return false;
  if (!slice_operand(c, 3, "axes", &axes) || (c.opset >= 10 && !slice_operand(c, 4, "steps", &steps)))
    return false;
  if (axes.empty()) axes = counting(0, static_cast<int64_t>(starts.size()));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    return false;
  Sizes now = *x;
  for (size_t k = 0; k < starts.size(); k++) {
    const int64_t axis = c.axis(axes[k], static_cast<int64_t>(now.shape.size()));
    const int64_t n = now.shape[static_cast<size_t>(axis)];
    const Cut bounds = cut(c.e, n, starts[k], ends[k], steps[k]);
    std::vector<size_t> picks;
    for (int64_t at = bounds.start; at < bounds.stop; at += bounds.step)
      picks.push_back(static_cast<size_t>(bounds.reversed ? n - 1 - at : at));
    Sizes next = {now.dtype, now.shape, {}};
    for (size_t place : along(now.shape, axis, picks)) next.v.push_back(now.v[place]);
    next.shape[static_cast<size_t>(axis)] = static_cast<int64_t>(picks.size());
    now = std::move(next);
  }
  c.set(0, std::move(now));
  return true;
}

bool fold_concat(Call& c) {
  if (c.n_in() == 0 || !c.known(0) || c.known(0)->shape.empty()) return false;
  Sizes all = *c.known(0);
  const int64_t axis = c.axis(c.i("axis", 0), static_cast<int64_t>(all.shape.size()));
  const auto at = static_cast<size_t>(axis);
  for (size_t i = 1; i < c.n_in(); i++) {
    const Sizes* x = c.known(i);
    if (!x || x->shape.size() != all.shape.size() || x->dtype != all.dtype) return false;
    Ints expected = all.shape;
    expected[at] = x->shape[at];
    if (x->shape != expected || all.v.size() + x->v.size() > kMostFolded) return false;
    const size_t outer = count_of(Ints(all.shape.begin(), all.shape.begin() + axis));
    if (outer == 0) return false;
    Sizes next = {all.dtype, all.shape, {}};
    next.shape[at] += x->shape[at];
    for (size_t o = 0; o < outer; o++)
      for (const Sizes* part : {static_cast<const Sizes*>(&all), x}) {
        const auto rows = static_cast<ptrdiff_t>(part->v.size() / outer);
        const auto from = part->v.begin() + static_cast<ptrdiff_t>(o) * rows;
        next.v.insert(next.v.end(), from, from + rows);
      }
    all = std::move(next);
  }
  c.set(0, std::move(all));
  return true;
}

bool fold_split(Call& c) {
  const Sizes* x = c.known(0);
  if (!x || x->shape.size() != 1) return false;
  Ints sizes = c.opset < 13 ? c.ints("split") : Ints();
  if (c.opset >= 13 && c.has(1)) {
    if (!all_numbers(c.known(1))) return false;
    sizes = c.known(1)->v;
  }
  if (sizes.empty()) {
    const auto parts = static_cast<int64_t>(c.node.outputs.size());
    if (parts == 0 || x->shape[0] % parts) return false;
    sizes.assign(static_cast<size_t>(parts), x->shape[0] / parts);
  }
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > x->shape[0]) return false;
    sum += size;
  }
  if (sum != x->shape[0] || sizes.size() != c.node.outputs.size()) return false;
  size_t at = 0;
  for (size_t k = 0; k < sizes.size(); k++) {
    SourceIndices places;
    for (int64_t i = 0; i < sizes[k]; i++) places.push_back(at++);
    take(c, k, *x, {sizes[k]}, places);
  }
  return true;
}

bool same_elements(Call& c, const Sizes& x, Ints shape) {
  for (int64_t d : shape)
    if (d < 0) return false;
  if (count_of(shape) != x.v.size()) return false;
  c.set(0, Sizes{x.dtype, std::move(shape), x.v});
  return true;
}

bool axes_of(Call& c, Ints* axes) {
  if (c.opset < 13)
    *axes = c.ints("axes");
  else if (c.has(1) && !all_numbers(c.known(1)))
    return false;
  else if (c.has(1))
    *axes = c.known(1)->v;
  return true;
}

bool fold_unsqueeze(Call& c) {
  const Sizes* x = c.known(0);
  Ints axes;
  if (!x || !axes_of(c, &axes) || axes.size() > KEEL_MAX_RANK) return false;
  const auto rank = static_cast<int64_t>(x->shape.size() + axes.size());
  for (auto& axis : axes) axis = c.axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  Ints shape = x->shape;
  for (int64_t axis : axes) {
    if (axis > static_cast<int64_t>(shape.size())) return false;
    shape.insert(shape.begin() + axis, 1);
  }
  return same_elements(c, *x, shape);
}

bool fold_squeeze(Call& c) {
  const Sizes* x = c.known(0);
  Ints axes, shape;
  if (!x || !axes_of(c, &axes)) return false;
  const auto rank = static_cast<int64_t>(x->shape.size());
  for (auto& axis : axes) axis = c.axis(axis, rank);
  const bool chosen = c.opset < 13 ? c.has_attribute("axes") : c.has(1);
  for (int64_t k = 0; k < rank; k++) {
    const int64_t n = x->shape[static_cast<size_t>(k)];
    const bool drop = chosen ? std::count(axes.begin(), axes.end(), k) > 0 : n == 1;
    if (!drop) shape.push_back(n);
  }
  return same_elements(c, *x, shape);
}

bool fold_reshape(Call& c) {
  const Sizes* x = c.known(0);
  if (!x || !all_numbers(c.known(1)) || c.known(1)->v.size() > KEEL_MAX_RANK) return false;
  Ints shape = c.known(1)->v;
  int64_t known = 1;
  for (size_t k = 0; k < shape.size(); k++) {
    if (shape[k] == 0 && k < x->shape.size() && !c.i("allowzero", 0)) shape[k] = x->shape[k];
    if (shape[k] > kMostFolded || shape[k] < -1) return false;
    if (shape[k] >= 0 && __builtin_mul_overflow(known, shape[k], &known)) return false;
  }
  for (auto& d : shape)
    if (d == -1 && known > 0) d = static_cast<int64_t>(x->v.size()) / known;
  return same_elements(c, *x, shape);
}

bool fold_transpose(Call& c) {
  const Sizes* x = c.known(0);
  if (!x) return false;
  const size_t rank = x->shape.size();
  Ints perm = c.ints("perm", counting(0, static_cast<int64_t>(rank)));
  if (!c.has_attribute("perm")) std::reverse(perm.begin(), perm.end());
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != counting(0, static_cast<int64_t>(rank))) return false;
  Ints shape;
  for (int64_t p : perm) shape.push_back(x->shape[static_cast<size_t>(p)]);
  SourceIndices places;
  for (size_t k = 0; k < x->v.size(); k++) {
    size_t rest = k, place = 0;
    for (size_t d = rank; d-- > 0;) {
      const auto n = static_cast<size_t>(shape[d]);
      const size_t stride = count_of(Ints(x->shape.begin() + perm[d] + 1, x->shape.end()));
      place += rest % n * stride;
      rest /= n;
    }
    places.push_back(place);
  }
  return take(c, 0, *x, shape, places);
}

bool fold_expand(Call& c) {
  const Sizes* x = c.known(0);
  Ints shape;
  if (!x || !all_numbers(c.known(1)) || !broadcast_shape(x->shape, c.known(1)->v, &shape)) return false;
  return take(c, 0, *x, shape, broadcast_sources(x->shape, shape));
}

constexpr Mover kMovers[] = {
    {"Gather", fold_gather},   {"Slice", fold_slice},     {"Concat", fold_concat},
    {"Split", fold_split},     {"Squeeze", fold_squeeze}, {"Unsqueeze", fold_unsqueeze},
    {"Reshape", fold_reshape}, {"Expand", fold_expand},   {"Transpose", fold_transpose},
};

}  // namespace

std::span<const Mover> movers() { return kMovers; }

bool broadcast_shape(const Ints& a, const Ints& b, Ints* out) {
  const Ints& longer = a.size() >= b.size() ? a : b;
  const Ints& shorter = a.size() >= b.size() ? b : a;
  *out = longer;
  for (size_t k = 0; k < shorter.size(); k++) {
    int64_t& d = (*out)[longer.size() - shorter.size() + k];
    if (d == 1)
      d = shorter[k];
    else if (shorter[k] != 1 && shorter[k] != d)
      return false;
  }
  int64_t count = 1;
  for (int64_t d : *out)
    if (d < 0 || d > kMostFolded || (count *= d) > kMostFolded) return false;
  return true;
}

std::vector<size_t> broadcast_sources(const Ints& from, const Ints& to) {
  SourceIndices places;
  const size_t count = count_of(to), skip = to.size() - from.size();
  for (size_t k = 0; k < count; k++) {
    size_t rest = k, place = 0, stride = 1;
    for (size_t d = to.size(); d-- > skip;) {
      const auto n = static_cast<size_t>(from[d - skip]);
      place += (n == 1 ? 0 : rest % static_cast<size_t>(to[d])) * stride;
      stride *= n;
      rest /= static_cast<size_t>(to[d]);
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace onnx_import
