// pool.cc: pooling with a window or over the whole image.
#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/window.h"

namespace onnx_import {
namespace {

Dims image_of(Call& c) {
  const Dims d = c.dims(0);
  if (d.size() < 3)
    c.invalid(cat("its operand has ", d.size(), " dims; expected batch, channels and image dims"));
  return Dims(d.begin() + 2, d.end());
}

Window pool_window(Call& c) {
  if (!c.has_attribute("kernel_shape")) c.invalid("attribute kernel_shape is missing");
  return window(c, image_of(c), c.ints("kernel_shape"));
}

// With ceil_mode a last window may extend beyond the padding, but must start within the image or its leading
// padding. Returns by how much it extends.
Dims overhang(Call& c, const Window& w) {
  const Dims image = image_of(c);
  Dims over(image.size(), 0);
  if (!c.i("ceil_mode", 0)) return over;
  Edit& e = c.e;
  for (size_t k = 0; k < image.size(); k++) {
    const int64_t s = w.stride[k];
    const keel_dim start = e.add(image[k], w.lo[k]), all = e.add(start, w.hi[k]);
    const keel_dim rounded_up = e.add(e.div(e.add(e.sub(all, w.span(k)), s - 1), s), 1);
    const keel_dim windows = e.min(rounded_up, e.div(e.add(start, s - 1), s));
    const keel_dim reach = e.add(e.mul(e.sub(windows, 1), s), w.span(k));
    over[k] = s == 1 ? 0 : e.max(e.sub(reach, all), 0);
  }
  return over;
}

void max_pool(Call& c) {
  Window w = pool_window(c);
  const Dims over = overhang(c, w);
  for (size_t k = 0; k < over.size(); k++) w.hi[k] = c.e.add(w.hi[k], over[k]);  // padding never wins
  const auto attrs = [&] {
    return Attrs()
        .ints("window", w.size)
        .ints("stride", w.stride)
        .ints("dil", w.dilation)
        .dims("lo", w.lo)
        .dims("hi", w.hi);
  };
  c.done("max_pool", {c.in(0)}, attrs());
  if (!c.wants(1)) return;
  c.set(1, c.e.op("max_pool_index", {c.in(0)}, attrs().flag("column_major", c.i("storage_order", 0) != 0)));
  c.out[1]->nonneg = true;
}

void average_pool(Call& c) {
  const Window w = pool_window(c);
  c.done("avg_pool", {c.in(0)},
         Attrs()
             .ints("window", w.size)
             .ints("stride", w.stride)
             .ints("dil", w.dilation)
             .dims("lo", w.lo)
             .dims("hi", w.hi)
             .dims("over", overhang(c, w))
             .flag("count_pad", c.i("count_include_pad", 0) != 0));
}

// The p-norm of each window: the mean over all cells times their number.
// A float in opset 1, an integer later.
double exponent(Call& c) {
  const double p = c.opset < 2 ? c.f("p", 2) : static_cast<double>(c.i("p", 2));
  if (!(p > 0)) c.invalid(cat("p is ", p, "; expected a positive number"));
  return p;
}

void lp_pool(Call& c) {
  const Window w = pool_window(c);
  Edit& e = c.e;
  const double p = exponent(c);
  double cells = 1;
  for (int64_t n : w.size) cells *= static_cast<double>(n);
  Dims over = overhang(c, w), hi = w.hi;
  for (size_t k = 0; k < over.size(); k++) hi[k] = e.add(hi[k], over[k]);
  const keel_dt dtype = c.dtype(0);
  const keel_value powers = e.op("pow", {e.op("abs", {c.in(0)}), e.scalar(dtype, p)});
  const keel_value means = e.op("avg_pool", {powers},
                                Attrs()
                                    .ints("window", w.size)
                                    .ints("stride", w.stride)
                                    .ints("dil", w.dilation)
                                    .dims("lo", w.lo)
                                    .dims("hi", hi)
                                    .flag("count_pad", true));
  c.done("pow", {e.op("mul", {means, e.scalar(dtype, cells)}), e.scalar(dtype, 1 / p)});
}

Attrs over_image(Call& c) {
  image_of(c);
  return Attrs().ints("axes", counting(2, c.rank(0))).flag("keep", true);
}

template <OpName op>
void global(Call& c) {
  c.done(op.text, {c.in(0)}, over_image(c));
}

void global_lp_pool(Call& c) {
  Edit& e = c.e;
  const double p = exponent(c);
  const keel_dt dtype = c.dtype(0);
  const keel_value powers = e.op("pow", {e.op("abs", {c.in(0)}), e.scalar(dtype, p)});
  c.done("pow", {e.op("reduce_sum", {powers}, over_image(c)), e.scalar(dtype, 1 / p)});
}

constexpr Rule kRules[] = {
    {"MaxPool", 1, max_pool, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"AveragePool", 1, average_pool,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"LpPool", 1, lp_pool, "auto_pad ceil_mode dilations kernel_shape p pads strides"},
    {"GlobalAveragePool", 1, global<"reduce_mean">},
    {"GlobalMaxPool", 1, global<"reduce_max">},
    {"GlobalLpPool", 1, global_lp_pool, "p"},
};

}  // namespace

Rules pool_rules() { return kRules; }

}  // namespace onnx_import
