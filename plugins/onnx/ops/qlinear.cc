// qlinear.cc: products and convolutions of quantised operands: QLinearMatMul, QLinearConv, ConvInteger.
#include "plugins/onnx/ops/quantize.h"
#include "plugins/onnx/ops/window.h"

namespace onnx_import {
namespace {

void qlinear_matmul(Call& c) {
  expect_matrices(c, 0, 3);
  const Term product = integer_product(c, 0, 3, 2, 5);
  const size_t out = product.rank();
  const Term scale = along(c, 1, out - 2, out).to(KEEL_F32) * along(c, 4, out - 1, out).to(KEEL_F32) /
                     along(c, 6, out - 2, out).to(KEEL_F32);
  requantised(c, product.to(KEEL_F32) * scale, 7, out - 2);
}

Term integer_conv(Call& c, size_t x, size_t w, size_t x_zero, size_t w_zero) {
  const Dims d = c.dims(x), weights = c.dims(w);
  if (d.size() < 3 || weights.size() != d.size())
    c.invalid(cat("its operand has ", d.size(), " dims and its weights ", weights.size(),
                  "; expected batch, channels and image dims in both"));
  Ints size;
  for (size_t k = 2; k < weights.size(); k++) size.push_back(static_dim(c, weights[k], "the window"));
  const Window win = window(c, Dims(d.begin() + 2, d.end()), size);
  Ids in = {c.in(x), c.in(w)};
  if (c.has(x_zero) || c.has(w_zero))
    in.push_back(c.has(x_zero) ? along(c, x_zero, 1, d.size()).v : KEEL_NO_VALUE);
  if (c.has(w_zero)) in.push_back(along(c, w_zero, 0, d.size()).v);
  return {c.e, c.e.op("conv_integer", in,
                      Attrs()
                          .ints("stride", win.stride)
                          .ints("dil", win.dilation)
                          .dims("lo", win.lo)
                          .dims("hi", win.hi)
                          .i("groups", c.i("group", 1)))};
}

void conv_integer(Call& c) { c.set(0, integer_conv(c, 0, 1, 2, 3).v); }

void qlinear_conv(Call& c) {
  Term sum = integer_conv(c, 0, 3, 2, 5);
  if (c.has(8)) sum = sum + along(c, 8, 1, sum.rank());
  const Term scale = along(c, 1, 1, sum.rank()).to(KEEL_F32) * along(c, 4, 1, sum.rank()).to(KEEL_F32) /
                     along(c, 6, 1, sum.rank()).to(KEEL_F32);
  requantised(c, sum.to(KEEL_F32) * scale, 7, 1);
}

constexpr const char* kConv = "auto_pad dilations group kernel_shape pads strides";
constexpr Rule kRules[] = {
    {"QLinearMatMul", 10, qlinear_matmul},
    {"QLinearConv", 10, qlinear_conv, kConv},
    {"ConvInteger", 10, conv_integer, kConv},
};

}  // namespace

Rules qlinear_rules() { return kRules; }

}  // namespace onnx_import
