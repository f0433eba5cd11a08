// norm.cc: normalisations. The ones with an op in the catalogue (layer_norm, rms_norm, batch_norm, lrn) use
// it; the others are composed of means and variances.
#include <algorithm>

#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

struct Moments {
  keel_value mean, centred, variance;
};
Moments moments(Edit& e, keel_value x, const Ints& axes) {
  const auto mean_of = [&](keel_value v) {
    return e.op("reduce_mean", {v}, Attrs().ints("axes", axes).flag("keep", true));
  };
  Moments m;
  m.mean = mean_of(x);
  m.centred = e.op("sub", {x, m.mean});
  m.variance = mean_of(e.op("square", {m.centred}));
  return m;
}
keel_value inverse_deviation(Edit& e, keel_value variance, double epsilon) {
  return e.op("rsqrt", {e.op("add", {variance, e.scalar(e.dtype(variance), epsilon)})});
}

// Without mean and with variance 1 along the axes; halves in f32, as their squares may overflow.
keel_value normalised(Edit& e, keel_value x, const Ints& axes, double epsilon) {
  const Moments m = moments(e, e.cast(x, wide(e.dtype(x))), axes);
  return e.cast(e.op("mul", {m.centred, inverse_deviation(e, m.variance, epsilon)}), e.dtype(x));
}

// A per-channel value for broadcasting: [c] becomes [c, 1, 1 ...].
keel_value per_channel(Edit& e, keel_value v, size_t rank) {
  Dims to(std::max<size_t>(rank, 2) - 1, 1);
  to[0] = e.dims(v).at(0);
  return e.reshape(v, to);
}

// The operand as a matrix of rows to normalise: dims before axis by the other dims.
struct Rows {
  Dims dims, tail;
  keel_value x;
  keel_dim length;
  bool whole;  // scale and bias have exactly the tail's dims
};
Rows rows_of(Call& c) {
  const auto axis = static_cast<size_t>(c.axis(c.i("axis", -1), c.rank(0)));
  Rows r;
  r.dims = c.dims(0);
  r.tail.assign(r.dims.begin() + static_cast<ptrdiff_t>(axis), r.dims.end());
  r.length = c.e.product(r.tail);
  const bool last = axis + 1 == r.dims.size();
  r.x = last ? c.in(0) : c.e.reshape(c.in(0), {c.e.product(r.dims, 0, axis), r.length});
  r.whole = c.dims(1) == r.tail && (!c.has(2) || c.dims(2) == r.tail);
  return r;
}

keel_value as_row(Call& c, const Rows& r, size_t i, double otherwise) {
  if (!r.whole || !c.has(i)) return filled(c.e, c.dtype(0), otherwise, {r.length}).v;
  return r.tail.size() == 1 ? c.in(i) : c.e.reshape(c.in(i), {r.length});
}

void finish(Call& c, const Rows& r, keel_value y) {
  if (r.x != c.in(0)) y = c.e.reshape(y, r.dims);
  if (!r.whole) {
    y = c.e.op("mul", {y, c.in(1)});
    if (c.has(2)) y = c.e.op("add", {y, c.in(2)});
  }
  c.set(0, y);
}

void layer_norm(Call& c) {
  const double epsilon = c.f("epsilon", 1e-5);
  const Rows r = rows_of(c);
  const Ids in = {r.x, as_row(c, r, 1, 1), as_row(c, r, 2, 0)};
  const Attrs attrs = Attrs().f("eps", epsilon);
  if (r.whole && r.x == c.in(0))
    c.done("layer_norm", in, attrs);
  else
    finish(c, r, c.e.op("layer_norm", in, attrs));
  if (!c.wants(1) && !c.wants(2)) return;
  const Moments m =
      moments(c.e, c.in(0), counting(c.rank(0) - static_cast<int64_t>(r.tail.size()), c.rank(0)));
  c.set(1, m.mean);
  c.set(2, inverse_deviation(c.e, m.variance, epsilon));
}

void rms_norm(Call& c) {
  const Rows r = rows_of(c);
  const Ids in = {r.x, as_row(c, r, 1, 1)};
  const Attrs attrs = Attrs().f("eps", c.f("epsilon", 1e-5));
  if (r.whole && r.x == c.in(0))
    c.done("rms_norm", in, attrs);
  else
    finish(c, r, c.e.op("rms_norm", in, attrs));
}

keel_value statistic(Call& c, size_t i) { return c.e.cast(c.in(i), c.dtype(0)); }

void batch_norm(Call& c) {
  c.expect_outputs(1);
  if (c.i("spatial", 1) != 1) c.unsupported("spatial 0 (statistics for every element) is not supported");
  c.done("batch_norm", {c.in(0), statistic(c, 1), statistic(c, 2), statistic(c, 3), statistic(c, 4)},
         Attrs().f("eps", c.f("epsilon", 1e-5)));
}

// Training: statistics of this batch, and updated running statistics.
void batch_norm_training(Call& c) {
  Edit& e = c.e;
  Ints axes = counting(0, c.rank(0));
  if (axes.size() < 2) c.invalid("its operand must have at least 2 dims");
  axes.erase(axes.begin() + 1);
  const keel_dim channels = c.dims(0)[1];
  const Moments m = moments(e, c.in(0), axes);
  const keel_value mean = e.reshape(m.mean, {channels}), variance = e.reshape(m.variance, {channels});
  c.done("batch_norm", {c.in(0), statistic(c, 1), statistic(c, 2), mean, variance},
         Attrs().f("eps", c.f("epsilon", 1e-5)));
  const double momentum = c.f("momentum", 0.9);
  const auto moved = [&](size_t i, keel_value now) {
    const keel_dt dtype = c.dtype(i);
    return e.op("add", {e.op("mul", {c.in(i), e.scalar(dtype, momentum)}),
                        e.op("mul", {e.cast(now, dtype), e.scalar(dtype, 1 - momentum)})});
  };
  if (c.wants(1)) c.set(1, moved(3, mean));
  if (c.wants(2)) c.set(2, moved(4, variance));
}
void batch_norm_14(Call& c) { c.i("training_mode", 0) ? batch_norm_training(c) : batch_norm(c); }

keel_value scale_and_shift(Call& c, keel_value y, keel_value scale, keel_value bias) {
  const size_t rank = c.dims(0).size();
  return c.e.op("add", {c.e.op("mul", {y, per_channel(c.e, scale, rank)}), per_channel(c.e, bias, rank)});
}

void instance_norm(Call& c) {
  if (c.rank(0) < 3) c.invalid("its operand must have at least 3 dims");
  const keel_value y = normalised(c.e, c.in(0), counting(2, c.rank(0)), c.f("epsilon", 1e-5));
  c.set(0, scale_and_shift(c, y, c.in(1), c.in(2)));
}

// Scale and bias are per group before opset 21, per channel from there on.
keel_value for_channels(Call& c, size_t i, int64_t groups, keel_dim channels) {
  if (c.opset >= 21) return c.in(i);
  const keel_dim each = c.e.div(channels, groups);
  const keel_value wide =
      c.e.op("broadcast_to", {c.e.reshape(c.in(i), {groups, 1})}, Attrs().dims("dims", {groups, each}));
  return c.e.reshape(wide, {channels});
}

void group_norm(Call& c) {
  Edit& e = c.e;
  const Dims dims = c.dims(0);
  const int64_t groups = c.required("num_groups");
  if (dims.size() < 2 || groups < 1)
    c.invalid("num_groups must be positive and the operand have at least 2 dims");
  const keel_dim length = e.mul(e.div(dims[1], groups), e.product(dims, 2));
  const keel_value y =
      normalised(e, e.reshape(c.in(0), {dims[0], groups, length}), {2}, c.f("epsilon", 1e-5));
  c.set(0, scale_and_shift(c, e.reshape(y, dims), for_channels(c, 1, groups, dims[1]),
                           for_channels(c, 2, groups, dims[1])));
}

void lrn(Call& c) {
  c.done("lrn", {c.in(0)},
         Attrs()
             .i("size", c.required("size"))
             .f("alpha", c.f("alpha", 1e-4))
             .f("beta", c.f("beta", 0.75))
             .f("bias", c.f("bias", 1)));
}

void mean_variance_norm(Call& c) {
  Ints axes = c.ints("axes", {0, 2, 3});
  for (auto& axis : axes) axis = c.axis(axis, c.rank(0));
  const Moments m = moments(c.e, c.in(0), axes);
  const keel_value deviation = c.e.op("add", {c.e.op("sqrt", {m.variance}), c.e.scalar(c.dtype(0), 1e-9)});
  c.done("div", {m.centred, deviation});
}

void lp_norm(Call& c) {
  Edit& e = c.e;
  const int64_t axis = c.axis(c.i("axis", -1), c.rank(0)), p = c.i("p", 2);
  if (p != 1 && p != 2) c.invalid(cat("p is ", p, "; expected 1 or 2"));
  const keel_value x = c.in(0), zero = e.scalar(c.dtype(0), 0), one = e.scalar(c.dtype(0), 1);
  const keel_value terms = e.op(p == 1 ? "abs" : "square", {x});
  keel_value norm = e.op("reduce_sum", {terms}, Attrs().ints("axes", {axis}).flag("keep", true));
  if (p == 2) norm = e.op("sqrt", {norm});
  c.done("div", {x, e.op("select", {e.op("equal", {norm, zero}), one, norm})});
}

constexpr Rule kRules[] = {
    {"LayerNormalization", 17, layer_norm, "axis epsilon stash_type"},
    {"RMSNormalization", 23, rms_norm, "axis epsilon stash_type"},
    {"BatchNormalization", 14, batch_norm_14, "epsilon momentum training_mode"},
    {"BatchNormalization", 7, batch_norm, "epsilon momentum spatial"},
    {"InstanceNormalization", 1, instance_norm, "epsilon"},
    {"GroupNormalization", 18, group_norm, "epsilon num_groups stash_type"},
    {"LRN", 1, lrn, "alpha beta bias size"},
    {"MeanVarianceNormalization", 9, mean_variance_norm, "axes"},
    {"LpNormalization", 1, lp_norm, "axis p"},
};

}  // namespace

Rules norm_rules() { return kRules; }

}  // namespace onnx_import
