// qlinear.cc: products and convolutions of quantised operands: QLinearMatMul, QLinearConv, ConvInteger.
//
// Zero points are subtracted in 32-bit integers. A convolution sums in f64, which holds every sum of products
// of 8-bit integers exactly, because the catalogue's conv takes floats.
#include <cmath>

#include "plugins/onnx/ops/term.h"
#include "plugins/onnx/ops/window.h"

namespace onnx_import {
namespace {

// Operand i (a scale or a zero point) along dim `axis` of a value of this rank; scalars broadcast.
Term along(Call& c, size_t i, size_t axis, size_t rank) {
  const Dims own = c.dims(i);
  if (own.empty() || (own.size() == 1 && own[0] == 1))
    return own.empty() ? Term(c, i) : Term(c, i).reshape({});
  if (own.size() != 1) return Term(c, i);
  Dims to(rank, 1);
  to.at(axis) = own[0];
  return Term(c, i).reshape(to);
}

Term centred(Call& c, size_t x, size_t zero, size_t axis) {
  const Term wide = Term(c, x).to(KEEL_I32);
  return c.has(zero) ? wide - along(c, zero, axis, wide.rank()).to(KEEL_I32) : wide;
}

// Rounds to the nearest even integer, adds the zero point (operand `zero`) and saturates.
void requantised(Call& c, const Term& y, size_t zero, size_t axis) {
  const keel_dt to = c.has(zero) ? c.dtype(zero) : c.dtype(0);
  if (!is_integer(to)) c.unsupported(cat("quantization to ", dtype_name(to)));
  Term z = y.op("round");
  if (c.has(zero)) z = z + along(c, zero, axis, y.rank()).to(z.dtype());
  const int bits = static_cast<int>(width_of(to) * 8);
  const double low = is_unsigned(to) ? 0 : -std::ldexp(1, bits - 1), high = low + std::ldexp(1, bits) - 1;
  c.set(0, z.clamp(low, high).to(to).v);
}

void qlinear_matmul(Call& c) {
  const size_t rank = c.dims(0).size(), columns = c.dims(3).size();
  if (rank < 2 || columns < 2) c.unsupported("vectors as operands; expected matrices or stacks of them");
  const Term product = centred(c, 0, 2, rank - 2).op("matmul", centred(c, 3, 5, columns - 1));
  const size_t out = product.rank();
  const Term scale = along(c, 1, out - 2, out).to(KEEL_F32) * along(c, 4, out - 1, out).to(KEEL_F32) /
                     along(c, 6, out - 2, out).to(KEEL_F32);
  requantised(c, product.to(KEEL_F32) * scale, 7, out - 2);
}

// The sum of products of x and w as f64, exact integers.
Term integer_conv(Call& c, const Term& x, const Term& w) {
  const Dims d = x.dims(), weights = w.dims();
  if (d.size() < 3 || weights.size() != d.size())
    c.invalid(cat("its operand has ", d.size(), " dims and its weights ", weights.size(),
                  "; expected batch, channels and image dims in both"));
  Ints size;
  for (size_t k = 2; k < weights.size(); k++) size.push_back(static_dim(c, weights[k], "the window"));
  const Window win = window(c, Dims(d.begin() + 2, d.end()), size);
  return x.to(KEEL_F64).op("conv", w.to(KEEL_F64),
                           Attrs()
                               .ints("stride", win.stride)
                               .ints("dil", win.dilation)
                               .dims("lo", win.lo)
                               .dims("hi", win.hi)
                               .i("groups", c.i("group", 1)));
}

void conv_integer(Call& c) {
  c.set(0, integer_conv(c, centred(c, 0, 2, 1), centred(c, 1, 3, 0)).to(KEEL_I32).v);
}

void qlinear_conv(Call& c) {
  Term sum = integer_conv(c, centred(c, 0, 2, 1), centred(c, 3, 5, 0));
  if (c.has(8)) sum = sum + along(c, 8, 1, sum.rank()).to(KEEL_F64);
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
