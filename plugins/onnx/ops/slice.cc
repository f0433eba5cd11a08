// slice.cc: Slice and Pad: negative bounds, steps and padding are expressed by Keel's slice, reverse, pad and
// gather. Bounds that only a run knows give a size that only a run knows.
#include "plugins/onnx/ops/slice.h"

#include <algorithm>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

constexpr int64_t kFar = INT32_MAX;  // exporters write it for "to the end"

// x clamped to [low, high], without bounds that always hold.
keel_dim clamped(Edit& e, keel_dim x, keel_dim low, keel_dim high) {
  const int32_t below = e.compare(x, high);
  if (below == KEEL_GREATER)
    x = high;
  else if (below == KEEL_UNCERTAIN)
    x = e.min(x, high);
  const int32_t above = e.compare(x, low);
  if (above == KEEL_LESS) return low;
  return above == KEEL_UNCERTAIN && e.compare(x, e.sub(low, 1)) != KEEL_GREATER ? e.max(x, low) : x;
}

bool negative(Edit& e, keel_dim x) { return e.compare(x, 0) == KEEL_LESS; }

keel_dim place(Edit& e, keel_dim size, keel_dim x, keel_dim low, keel_dim high) {
  if (KEEL_DIM_IS_HANDLE(size) && !KEEL_DIM_IS_HANDLE(x) && x >= kFar) return high;
  if (KEEL_DIM_IS_HANDLE(size) && !KEEL_DIM_IS_HANDLE(x) && x <= -kFar) return low;
  return clamped(e, negative(e, x) ? e.add(x, size) : x, low, high);
}

struct Bounds {
  Dims starts, ends;
  Ints axes, steps;
};

void apply(Call& c, Bounds b) {
  const Dims dims = c.dims(0);
  const size_t n = b.starts.size();
  if (b.axes.empty()) b.axes = counting(0, static_cast<int64_t>(n));
  if (b.steps.empty()) b.steps.assign(n, 1);
  if (b.ends.size() != n || b.axes.size() != n || b.steps.size() != n)
    c.invalid("starts, ends, axes and steps differ in length");
  Dims start(dims.size(), 0), stop = dims;
  Ints step(dims.size(), 1), reversed;
  for (size_t k = 0; k < n; k++) {
    const auto axis = static_cast<size_t>(c.axis(b.axes[k], c.rank(0)));
    if (b.steps[k] == 0) c.invalid("a step is 0");
    const Cut one = cut(c.e, dims[axis], b.starts[k], b.ends[k], b.steps[k]);
    start[axis] = one.start, stop[axis] = one.stop, step[axis] = one.step;
    if (one.reversed) reversed.push_back(static_cast<int64_t>(axis));
  }
  const keel_value x =
      reversed.empty() ? c.in(0) : c.e.op("reverse", {c.in(0)}, Attrs().ints("axes", reversed));
  c.done("slice", {x}, Attrs().dims("start", start).dims("stop", stop).ints("step", step));
}

// ---- bounds that only a run knows

// Entry k of operand i: a number or a symbol if it is known.
Term bound(Call& c, size_t i, size_t k) {
  if (const Sizes* known = c.known(i)) return {c.e, c.e.number(known->v.at(k), KEEL_I64)};
  const auto at = static_cast<int64_t>(k);
  return Term(c, i).slice(0, at, at + 1).reshape({}).to(KEEL_I64);
}

// The elements of an axis of x between bounds k.
Term part(Call& c, const Term& x, int64_t axis, size_t k, int64_t step) {
  const keel_dim dim = x.dim(static_cast<size_t>(axis));
  const Term size = {c.e, c.e.number(dim, KEEL_I64)}, high = step > 0 ? size : size - 1;
  const auto place = [&](size_t operand, double low) {
    const Term at = bound(c, operand, k);
    return select(at < 0, at + size, at).op("maximum", low).op("minimum", high);
  };
  const Term stop = place(2, step > 0 ? 0 : -1);
  if (axis == 0 && step == 1 && c.known(1) && c.known(1)->v[k] == 0) return x.op("trim", stop);
  const Term start = place(1, 0), span = (step > 0 ? stop - start : start - stop).op("maximum", 0);
  const auto stride = static_cast<double>(step > 0 ? step : -step);
  const Term places = counting_term(c.e, dim, KEEL_I64).op("trim", (span + (stride - 1)) / stride);
  return x.gather(places * static_cast<double>(step) + start, axis);
}

// One axis after another.
void slice_in_run(Call& c) {
  const auto length = [&](size_t i) {
    if (c.known(i)) return static_cast<int64_t>(c.known(i)->v.size());
    return c.rank(i) == 1 ? static_dim(c, c.dims(i)[0], "the number of bounds") : -1;
  };
  const int64_t n = length(1);
  const Ints axes = c.has(3) ? c.numbers(3) : counting(0, n),
             steps = c.has(4) ? c.numbers(4) : Ints(axes.size(), 1);
  if (n < 0 || length(2) != n || std::ssize(axes) != n || std::ssize(steps) != n)
    c.invalid("starts, ends, axes and steps differ in length");
  Term x(c, 0);
  for (size_t k = 0; k < axes.size(); k++) {
    constexpr int64_t kMost = int64_t{1} << 40;  // no dim is larger
    if (steps[k] == 0) c.invalid("a step is 0");
    x = part(c, x, c.axis(axes[k], c.rank(0)), k, std::clamp(steps[k], -kMost, kMost));
  }
  c.set(0, x.v);
}

void slice(Call& c) {
  if (!c.known(1) || !c.known(2)) return slice_in_run(c);
  apply(c, {c.list(1), c.list(2), c.has(3) ? c.numbers(3) : Ints(), c.has(4) ? c.numbers(4) : Ints()});
}
void slice_1(Call& c) { apply(c, {c.ints("starts"), c.ints("ends"), c.ints("axes"), {}}); }

// ---- Pad

struct Padding {
  Dims lo, hi;
};

// The source index of each result position along one axis.
keel_value source_indices(Call& c, const std::string& mode, keel_dim size, keel_dim lo, keel_dim hi) {
  Edit& e = c.e;
  const auto n = [&](keel_dim d) { return e.number(d, KEEL_I64); };
  const keel_value at = e.op("sub", {e.iota(e.add(size, e.add(lo, hi)), KEEL_I64), n(lo)});
  if (mode == "edge") return e.op("clamp", {at, n(0), n(e.sub(size, 1))});
  if (mode == "wrap") return e.op("mod", {at, n(size)});
  const keel_dim period = e.max(e.mul(e.sub(size, 1), 2), 1);  // reflect
  const keel_value m = e.op("mod", {at, n(period)});
  return size == 1 ? m : e.op("minimum", {m, e.op("sub", {n(period), m})});
}

void pad_by_gather(Call& c, const std::string& mode, const Padding& p) {
  const Dims dims = c.dims(0);
  keel_value x = c.in(0);
  for (size_t k = 0; k < dims.size(); k++) {
    if (p.lo[k] == 0 && p.hi[k] == 0) continue;
    if (dims[k] == 0) c.invalid(cat("dim ", k, " is empty, so there is nothing to repeat"));
    x = c.e.op("gather", {x, source_indices(c, mode, dims[k], p.lo[k], p.hi[k])},
               Attrs().i("axis", static_cast<int64_t>(k)));
  }
  c.set(0, x);
}

// Negative padding crops, which Keel's pad does not support.
void pad_constant(Call& c, const Padding& p, keel_value v) {
  const Dims dims = c.dims(0);
  Dims lo = p.lo, hi = p.hi, start(dims.size(), 0), stop = dims;
  bool cuts = false;
  for (size_t k = 0; k < dims.size(); k++) {
    if (negative(c.e, lo[k])) start[k] = c.e.sub(0, lo[k]), lo[k] = 0, cuts = true;
    if (negative(c.e, hi[k])) stop[k] = c.e.add(dims[k], hi[k]), hi[k] = 0, cuts = true;
  }
  const keel_value x =
      cuts ? c.e.op("slice", {c.in(0)}, Attrs().dims("start", start).dims("stop", stop)) : c.in(0);
  c.done("pad", {x, v}, Attrs().dims("lo", lo).dims("hi", hi));
}

void pad_with(Call& c, const Dims& pads, Ints axes, bool has_value, keel_value given) {
  if (axes.empty() && pads.size() == 2 * c.dims(0).size()) axes = counting(0, c.rank(0));
  if (pads.size() != 2 * axes.size())
    c.invalid(cat("pads has ", pads.size(), " entries for ", axes.size(), " axes"));
  Padding p = {Dims(c.dims(0).size(), 0), Dims(c.dims(0).size(), 0)};
  for (size_t k = 0; k < axes.size(); k++) {
    const auto axis = static_cast<size_t>(c.axis(axes[k], c.rank(0)));
    p.lo[axis] = pads[k];
    p.hi[axis] = pads[k + axes.size()];
  }
  const std::string mode = c.s("mode", "constant");
  if (mode == "constant") return pad_constant(c, p, has_value ? given : c.e.scalar(c.dtype(0), 0));
  if (mode != "reflect" && mode != "edge" && mode != "wrap") c.invalid(cat("mode is '", mode, "'"));
  pad_by_gather(c, mode, p);
}

void pad(Call& c) {
  const bool given = c.has(2);
  const keel_value v = !given ? KEEL_NO_VALUE : c.rank(2) == 0 ? c.in(2) : c.e.reshape(c.in(2), {});
  pad_with(c, c.list(1), c.has(3) ? c.numbers(3) : Ints(), given, v);
}
void pad_2(Call& c) {
  const Ints pads = c.ints(c.opset < 2 ? "paddings" : "pads");
  pad_with(c, pads, {}, true, c.e.scalar(c.dtype(0), c.f("value", 0)));
}

constexpr Rule kRules[] = {
    {"Slice", 10, slice, "", bit(1) | bit(2) | bit(3) | bit(4), true},
    {"Slice", 1, slice_1, "starts ends axes", 0, true},
    {"Pad", 11, pad, "mode", bit(1) | bit(3)},
    {"Pad", 2, pad_2, "mode pads value"},
    {"Pad", 1, pad_2, "mode paddings value"},
};

}  // namespace

Cut cut(Edit& e, keel_dim size, keel_dim start, keel_dim end, int64_t step) {
  if (step == 0) refuse(KEEL_INVALID, "Slice: a step is 0");
  if (step < -INT64_MAX) step = -INT64_MAX;
  Cut c = {0, 0, step > 0 ? step : -step, step < 0};
  if (step > 0) {
    c.start = place(e, size, start, 0, size);
    c.stop = place(e, size, end, 0, size);
  } else {  // counted from the other end: element i is size - 1 - i
    const keel_dim last = e.sub(size, 1);
    c.start = e.sub(last, place(e, size, start, -1, last));
    if (e.compare(start, -1) == KEEL_LESS) c.start = clamped(e, c.start, 0, e.max(last, 0));  // to the first
    c.stop = e.sub(last, place(e, size, end, -1, last));
  }
  if (c.start != 0) c.stop = clamped(e, c.stop, c.start, size);
  return c;
}

Rules slice_rules() { return kRules; }

}  // namespace onnx_import
