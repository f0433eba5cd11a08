// reduce.cc: reductions along axes: the Reduce family, ArgMax, TopK, CumSum.
//
// Axes are an operand from opset 18 on (ReduceSum: 13), an attribute before; Reduction holds both. No axes
// means all, unless noop_with_empty_axes is set.
#include "plugins/onnx/import/named.h"

namespace onnx_import {
namespace {

struct Reduction {
  Ints axes;
  bool keep;
  Attrs attrs(bool keep_dims) const { return Attrs().ints("axes", axes).flag("keep", keep_dims); }
};

Reduction reduction(Call& c, int operand_since) {
  Reduction r;
  const bool given = c.opset < operand_since ? c.has_attribute("axes") : c.has(1);
  if (given) r.axes = c.opset < operand_since ? c.ints("axes") : c.numbers(1);
  for (auto& axis : r.axes) axis = c.axis(axis, c.rank(0));
  if (r.axes.empty() && !c.i("noop_with_empty_axes", 0)) r.axes = counting(0, c.rank(0));
  r.keep = c.i("keepdims", 1) != 0;
  return r;
}

template <OpName op, int since>
void reduce(Call& c) {
  const Reduction r = reduction(c, since);
  c.done(op.text, {c.in(0)}, r.attrs(r.keep));
}

template <int since>
void reduce_l1(Call& c) {
  const Reduction r = reduction(c, since);
  c.done("reduce_sum", {c.e.op("abs", {c.in(0)})}, r.attrs(r.keep));
}

template <int since>
void reduce_sum_square(Call& c) {
  const Reduction r = reduction(c, since);
  c.done("reduce_sum", {c.e.op("square", {c.in(0)})}, r.attrs(r.keep));
}

// Roots and logarithms need floats; integers are cast there and back.
keel_value as_float(Call& c) { return is_float(c.dtype(0)) ? c.in(0) : c.e.cast(c.in(0), KEEL_F64); }
void finish(Call& c, const char* op, keel_value x) {
  if (is_float(c.dtype(0))) return c.done(op, {x});
  c.done("cast", {c.e.op(op, {x})}, Attrs().dtype("to", c.dtype(0)));
}

template <int since>
void reduce_l2(Call& c) {
  const Reduction r = reduction(c, since);
  finish(c, "sqrt", c.e.op("reduce_sum", {c.e.op("square", {as_float(c)})}, r.attrs(r.keep)));
}

template <int since>
void reduce_log_sum(Call& c) {
  const Reduction r = reduction(c, since);
  finish(c, "log", c.e.op("reduce_sum", {as_float(c)}, r.attrs(r.keep)));
}

// log(sum(exp(x - m))) + m, where m is the maximum, which cannot overflow.
template <int since>
void reduce_log_sum_exp(Call& c) {
  const Reduction r = reduction(c, since);
  Edit& e = c.e;
  const keel_value x = as_float(c), zero = e.scalar(e.dtype(x), 0);
  const keel_value top = e.op("reduce_max", {x}, r.attrs(true));
  const keel_value m = e.op("select", {e.op("is_finite", {top}), top, zero});
  const keel_value sum = e.op("reduce_sum", {e.op("exp", {e.op("sub", {x, m})})}, r.attrs(true));
  keel_value y = e.op("add", {e.op("log", {sum}), m});
  if (!r.keep) y = e.op("reduce_sum", {y}, r.attrs(false));
  c.set(0, e.cast(y, c.dtype(0)));
}

template <OpName op>
void arg(Call& c) {
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(0));
  const Attrs attrs = Attrs().i("axis", axis).flag("last", c.i("select_last_index", 0) != 0);
  if (!c.i("keepdims", 1)) {
    c.done(op.text, {c.in(0)}, attrs);
  } else {
    Dims to = c.dims(0);
    to[static_cast<size_t>(axis)] = 1;
    c.done("reshape", {c.e.op(op.text, {c.in(0)}, attrs)}, Attrs().dims("to", to));
  }
  c.out.at(0)->nonneg = true;
}

// Keel's top_k works along the last dim.
void top_k_of(Call& c, keel_dim k) {
  const int64_t rank = c.rank(0), axis = c.axis(c.i("axis", -1), rank);
  Ints perm = counting(0, rank);
  std::swap(perm[static_cast<size_t>(axis)], perm[static_cast<size_t>(rank - 1)]);
  const bool last = axis == rank - 1;
  const Attrs swap = Attrs().ints("perm", perm);
  const keel_value x = last ? c.in(0) : c.e.op("transpose", {c.in(0)}, swap);
  Ids both = c.e.ops("top_k", {x}, Attrs().dim("k", k).flag("largest", c.i("largest", 1) != 0), 2,
                     last ? c.name : "");
  for (size_t i = 0; i < both.size(); i++) c.set(i, last ? both[i] : c.e.op("transpose", {both[i]}, swap));
  if (c.out.size() > 1) c.out[1]->nonneg = true;
}
void top_k(Call& c) { top_k_of(c, c.list(1).at(0)); }
void top_k_1(Call& c) { top_k_of(c, c.required("k")); }

template <OpName op>
void running(Call& c) {
  const int64_t axis = c.axis(c.numbers(1).at(0), c.rank(0));
  c.done(op.text, {c.in(0)},
         Attrs()
             .i("axis", axis)
             .flag("exclusive", c.i("exclusive", 0) != 0)
             .flag("reverse", c.i("reverse", 0) != 0));
}

constexpr const char* kNew = "keepdims noop_with_empty_axes";
constexpr const char* kOld = "keepdims axes";
constexpr Rule kRules[] = {
    {"ReduceSum", 13, reduce<"reduce_sum", 13>, kNew, bit(1)},
    {"ReduceSum", 1, reduce<"reduce_sum", 13>, kOld},
    {"ReduceMean", 18, reduce<"reduce_mean", 18>, kNew, bit(1)},
    {"ReduceMean", 1, reduce<"reduce_mean", 18>, kOld},
    {"ReduceProd", 18, reduce<"reduce_prod", 18>, kNew, bit(1)},
    {"ReduceProd", 1, reduce<"reduce_prod", 18>, kOld},
    {"ReduceMax", 18, reduce<"reduce_max", 18>, kNew, bit(1)},
    {"ReduceMax", 1, reduce<"reduce_max", 18>, kOld},
    {"ReduceMin", 18, reduce<"reduce_min", 18>, kNew, bit(1)},
    {"ReduceMin", 1, reduce<"reduce_min", 18>, kOld},
    {"ReduceL1", 18, reduce_l1<18>, kNew, bit(1)},
    {"ReduceL1", 1, reduce_l1<18>, kOld},
    {"ReduceL2", 18, reduce_l2<18>, kNew, bit(1)},
    {"ReduceL2", 1, reduce_l2<18>, kOld},
    {"ReduceSumSquare", 18, reduce_sum_square<18>, kNew, bit(1)},
    {"ReduceSumSquare", 1, reduce_sum_square<18>, kOld},
    {"ReduceLogSum", 18, reduce_log_sum<18>, kNew, bit(1)},
    {"ReduceLogSum", 1, reduce_log_sum<18>, kOld},
    {"ReduceLogSumExp", 18, reduce_log_sum_exp<18>, kNew, bit(1)},
    {"ReduceLogSumExp", 1, reduce_log_sum_exp<18>, kOld},
    {"ArgMax", 1, arg<"arg_max">, "axis keepdims select_last_index"},
    {"ArgMin", 1, arg<"arg_min">, "axis keepdims select_last_index"},
    {"TopK", 10, top_k, "axis largest sorted", bit(1)},
    {"TopK", 1, top_k_1, "axis k"},
    {"CumSum", 11, running<"cumsum">, "exclusive reverse", bit(1)},
    {"CumProd", 26, running<"cumprod">, "exclusive reverse", bit(1)},
};

}  // namespace

Rules reduce_rules() { return kRules; }

}  // namespace onnx_import
