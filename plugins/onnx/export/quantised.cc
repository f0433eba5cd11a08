// quantised.cc: products and convolutions of 8-bit integers, and products of weights in blocks, which without
// these converters would be written as their bodies.
#include <algorithm>

#include "plugins/onnx/export/window.h"

namespace onnx_export {
namespace {

bool is_one(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](keel_dim d) { return d == 1; });
}

// Operand i, a zero point, as ONNX takes it: a scalar, or a vector if only dim `axis` of it is not 1. "" if
// it is absent.
std::string zero_point(Call& c, uint32_t i, size_t axis) {
  if (!c.has(i)) return "";
  Dims dims = c.dims(i);
  if (is_one(dims)) return c.reshape(c.in(i), {});
  const keel_dim n = axis < dims.size() ? dims[axis] : 1;
  if (axis < dims.size()) dims[axis] = 1;
  if (!is_one(dims)) throw Refused{"zero points along other dims"};
  return c.reshape(c.in(i), {n});
}

Names with_zeros(Call& c, const std::string& x_zero, const std::string& w_zero) {
  Names in = {c.in(0), c.in(1), x_zero, w_zero};
  while (in.back().empty()) in.pop_back();
  return in;
}

// Runtimes have MatMulInteger with one zero point, and one for each column of a matrix; else a product of
// i32.
void matmul_integer(Call& c) {
  const bool rows = c.has(2) && !is_one(c.dims(2)), columns = c.has(3) && !is_one(c.dims(3));
  if (!rows && (!columns || (c.rank(1) == 2 && c.dims(3).back() != 1)))
    return c.give("MatMulInteger",
                  with_zeros(c, zero_point(c, 2, 0), zero_point(c, 3, columns ? c.dims(3).size() - 1 : 0)));
  Names in;
  for (uint32_t i = 0; i < 2; i++) {
    const std::string wide = c.cast(c.in(i), KEEL_I32);
    in.push_back(c.has(i + 2) ? c.add("Sub", {wide, c.cast(c.in(i + 2), KEEL_I32)}) : wide);
  }
  c.give("MatMul", in);
}

void conv_integer(Call& c) {
  check_image(c);
  if (c.has(2) && !is_one(c.dims(2))) throw Refused{"zero points of images: not one number"};
  if (c.has(3) && !is_one(c.dims(3)) && c.rank(3) != c.rank(1)) throw Refused{"zero points along the window"};
  c.give("ConvInteger", with_zeros(c, zero_point(c, 2, 0), zero_point(c, 3, 0)),
         window(c, inner(c, 1), pads(c.numbers("lo"), c.numbers("hi"))));
}

// The weights of matmul_blocks: n rows of `blocks` blocks of `size` numbers.
struct Blocks {
  int64_t bits, n, blocks, size;
};

Blocks blocks_of(const keel_tensor& w, int64_t bits) {
  return {bits, w.shape[0], w.shape[1], w.shape[2] * 8 / bits};
}

// MatMulNBits has rows without spare blocks; ONNX Runtime takes zero points of 8-bit weights as bytes only,
// and rounds the values only if the model holds the weights.
bool fits_n_bits(const keel_host* host, const keel_node* node) {
  keel_tensor x, w, scale;
  keel_attr bits, rounded;
  uint32_t n_in = 0, n_out = 0;
  host->node_arity(node, &n_in, &n_out);
  check(host->node_in(node, 0, &x)), check(host->node_in(node, 1, &w)), check(host->node_in(node, 2, &scale));
  check(host->node_attr(node, "bits", &bits)), check(host->node_attr(node, "rounded", &rounded));
  const keel_dt t = dtype_of(x);
  const int64_t k = x.shape[x.ndim - 1], known = std::min({k, w.shape[0], w.shape[1], w.shape[2]});
  if ((t != KEEL_F32 && t != KEEL_F16) || known < 1) return false;
  const Blocks b = blocks_of(w, bits.i);
  const bool power = b.size >= 16 && (b.size & (b.size - 1)) == 0;
  const bool held = rounded.i == 0 || (w.data && scale.data);
  return power && held && (k + b.size - 1) / b.size == b.blocks && (n_in < 4 || bits.i < 8);
}

void matmul_blocks(Call& c) {
  const Blocks b = blocks_of(c.scope.type(c.in_value(1)), c.number("bits"));
  Names in = {c.in(0), c.in(1), c.in(2)};
  if (c.has(3)) in.push_back(c.in(3));
  c.scope.model().need_domain("com.microsoft", 1);
  c.give("com.microsoft.MatMulNBits", in,
         NodeAttrs()
             .i("K", c.dims().back())
             .i("N", b.n)
             .i("bits", b.bits)
             .i("block_size", b.size)
             .i("accuracy_level", c.flag("rounded") ? 4 : 0));
}

constexpr Row kRows[] = {{"matmul_integer", matmul_integer},
                         {"conv_integer", conv_integer},
                         {"matmul_blocks", matmul_blocks, nullptr, fits_n_bits}};

}  // namespace

Rows quantised_rows() { return kRows; }

}  // namespace onnx_export
