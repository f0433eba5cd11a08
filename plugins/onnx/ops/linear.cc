// linear.cc: matrix products and convolutions.
#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/quantize.h"
#include "plugins/onnx/ops/window.h"

namespace onnx_import {
namespace {

// A vector on the left is a row, on the right a column; that dim is removed from the result.
void matmul(Call& c) {
  const Dims a = c.dims(0), b = c.dims(1);
  if (a.empty() || b.empty()) c.invalid("an operand has no dims");
  if (a.size() > 1 && b.size() > 1) return c.done("matmul", c.all());
  const keel_value left = a.size() == 1 ? c.e.reshape(c.in(0), {1, a[0]}) : c.in(0);
  const keel_value right = b.size() == 1 ? c.e.reshape(c.in(1), {b[0], 1}) : c.in(1);
  const keel_value y = c.e.op("matmul", {left, right});
  Dims to = c.e.dims(y);
  if (b.size() == 1) to.pop_back();
  if (a.size() == 1) to.erase(to.end() - (b.size() == 1 ? 1 : 2));
  c.done("reshape", {y}, Attrs().dims("to", to));
}

keel_value scaled(Edit& e, keel_value x, double by) {
  return by == 1 ? x : e.op("mul", {x, e.scalar(e.dtype(x), by)});
}

void gemm(Call& c) {
  const Attrs turns = Attrs().flag("ta", c.i("transA", 0) != 0).flag("tb", c.i("transB", 0) != 0);
  const double alpha = c.f("alpha", 1), beta = c.f("beta", 1);
  const bool adds = c.has(2) && beta != 0;
  if (alpha == 1 && !adds) return c.done("matmul", {c.in(0), c.in(1)}, turns);
  const keel_value product = c.e.op("matmul", {c.in(0), c.in(1)}, turns);
  if (adds) return c.done("add", {scaled(c.e, product, alpha), scaled(c.e, c.in(2), beta)});
  c.done("mul", {product, c.e.scalar(c.dtype(0), alpha)});
}

Dims image_of(Call& c) {
  const Dims d = c.dims(0);
  if (d.size() < 3)
    c.invalid(cat("its operand has ", d.size(), " dims; expected batch, channels and image dims"));
  return Dims(d.begin() + 2, d.end());
}

Ints window_size(Call& c, const Dims& weights) {
  if (weights.size() < 3) c.invalid(cat("its weights have ", weights.size(), " dims; expected at least 3"));
  const Ints size(weights.begin() + 2, weights.end());
  for (int64_t n : size)
    if (KEEL_DIM_IS_HANDLE(n)) c.unsupported("the window's dims are symbolic");
  if (c.has_attribute("kernel_shape") && c.ints("kernel_shape") != size)
    c.invalid("kernel_shape differs from the dims of the weights");
  return size;
}

// The bias is per channel: [c] becomes [c, 1, 1 ...].
void finish(Call& c, const char* op, const Ids& in, const Attrs& attrs, size_t image_rank) {
  if (!c.has(2)) return c.done(op, in, attrs);
  Dims to(image_rank + 1, 1);
  to[0] = c.dims(2).at(0);
  c.done("add", {c.e.op(op, in, attrs), c.e.reshape(c.in(2), to)});
}

void conv(Call& c) {
  const Dims image = image_of(c);
  Window w = window(c, image, window_size(c, c.dims(1)));
  finish(c, "conv", {c.in(0), c.in(1)},
         Attrs()
             .ints("stride", w.stride)
             .ints("dil", w.dilation)
             .dims("lo", w.lo)
             .dims("hi", w.hi)
             .i("groups", c.i("group", 1)),
         image.size());
}

// The cropping of a transposed convolution's full result, before and after.
struct Transposed {
  Dims lo, out;
};

Transposed transposed(Call& c, const Dims& image, const Ints& size) {
  Edit& e = c.e;
  const size_t rank = image.size();
  const Ints stride = c.ints("strides", Ints(rank, 1)), dilation = c.ints("dilations", Ints(rank, 1)),
             extra = c.ints("output_padding", Ints(rank, 0)), shape = c.ints("output_shape"),
             pads = c.ints("pads", Ints(2 * rank, 0));
  if (size.size() != rank || stride.size() != rank || dilation.size() != rank || extra.size() != rank ||
      pads.size() != 2 * rank || (!shape.empty() && shape.size() != rank))
    c.invalid(cat("its attributes do not fit ", rank, " image dims"));
  const std::string mode = c.s("auto_pad", "NOTSET");
  Transposed t;
  for (size_t k = 0; k < rank; k++) {
    const keel_dim span = e.add(e.mul(dilation[k], size[k] - 1), 1);
    const keel_dim full = e.add(e.add(e.mul(e.sub(image[k], 1), stride[k]), span), extra[k]);
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (!shape.empty() || same) {
      const keel_dim out = shape.empty() ? e.mul(image[k], stride[k]) : shape[k];
      keel_dim off = e.sub(full, out);
      if (!e.at_least(off, 0)) off = e.max(off, 0);
      const keel_dim half = e.div(off, 2);
      t.lo.push_back(mode == "SAME_LOWER" ? e.sub(off, half) : half);
      t.out.push_back(out);
    } else {
      const bool valid = mode == "VALID";
      t.lo.push_back(valid ? 0 : pads[k]);
      t.out.push_back(valid ? full : e.sub(full, e.add(pads[k], pads[k + rank])));
    }
  }
  return t;
}

void conv_transpose(Call& c) {
  const Dims image = image_of(c), weights = c.dims(1);
  const Ints size = window_size(c, weights);
  const int64_t groups = c.i("group", 1);
  const Transposed t = transposed(c, image, size);
  Dims dims = {c.dims(0)[0], c.e.mul(weights[1], groups)};
  dims.insert(dims.end(), t.out.begin(), t.out.end());
  const Ints ones(image.size(), 1);
  finish(c, "conv_grad_x", {c.in(0), c.in(1)},
         Attrs()
             .dims("dims", dims)
             .ints("stride", c.ints("strides", ones))
             .ints("dil", c.ints("dilations", ones))
             .dims("lo", t.lo)
             .i("groups", groups),
         image.size());
}

void matmul_integer(Call& c) { c.set(0, integer_product(c, 0, 1, 2, 3).v); }

constexpr const char* kConv = "auto_pad dilations group kernel_shape pads strides";
constexpr Rule kRules[] = {
    {"MatMul", 1, matmul},
    {"Gemm", 7, gemm, "alpha beta transA transB"},
    {"Gemm", 1, gemm, "alpha beta broadcast transA transB"},
    {"Conv", 1, conv, kConv},
    {"ConvTranspose", 1, conv_transpose,
     "auto_pad dilations group kernel_shape pads strides output_padding output_shape"},
    {"MatMulInteger", 10, matmul_integer},
};

}  // namespace

Rules linear_rules() { return kRules; }

}  // namespace onnx_import
