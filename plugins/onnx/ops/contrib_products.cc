// contrib_products.cc: products of quantised operands, domain com.microsoft: MatMulNBits,
// DynamicQuantizeMatMul, MatMulIntegerToFloat.
#include <cmath>

#include "plugins/onnx/ops/quantize.h"

namespace onnx_import {
namespace {

// The numbers of `bits` bits in bytes, low bits first: [..., n] to [..., n * 8 / bits].
Term unpacked(const Term& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  std::vector<Term> parts;
  for (int64_t at = 0; at < 8; at += bits) {
    const Term moved = at == 0 ? bytes : bytes.op("shift_right", static_cast<double>(at));
    parts.push_back(moved.op("bit_and", std::ldexp(1, static_cast<int>(bits)) - 1).unsqueeze(bytes.rank()));
  }
  Dims to = bytes.dims();
  to.back() = bytes.edit().mul(to.back(), 8 / bits);
  return concat(parts, static_cast<int64_t>(bytes.rank())).reshape(to);
}

constexpr int64_t kEightBits = 4;  // accuracy_level of values that are rounded to 8 bits

struct Blocks {
  int64_t bits, size, n, k, count;  // count: blocks per row
};

Blocks blocks_of(Call& c) {
  Blocks b = {c.i("bits", 4), c.required("block_size"), c.required("N"), c.required("K"), 0};
  if (b.bits != 2 && b.bits != 4 && b.bits != 8)
    c.unsupported(cat("bits is ", b.bits, "; expected 2, 4 or 8"));
  if (b.size < 16 || b.size > (1 << 20) || (b.size & (b.size - 1)) != 0)
    c.invalid(cat("block_size is ", b.size, "; expected a power of 2 of at least 16"));
  if (b.n < 1 || b.k < 1 || b.n >= (int64_t{1} << 31) || b.k >= (int64_t{1} << 31))
    c.invalid(cat("N and K are ", b.n, " and ", b.k, "; expected positive sizes"));
  b.count = (b.k + b.size - 1) / b.size;
  return b;
}

// Operand i, u8 or floats, with these dims; its own may be flat.
Term blocked(Call& c, size_t i, const Dims& to) {
  const keel_dim got = c.e.product(c.dims(i)), wanted = c.e.product(to);
  if (!c.e.is(got, wanted)) c.invalid(cat("operand ", i, " has ", got, " elements; expected ", wanted));
  return Term(c, i).reshape(to);
}

// The zero points of the blocks, [n, blocks], which may be packed as the weights are.
Term zeros_of(Call& c, const Blocks& b, keel_dt dtype) {
  if (is_float(c.dtype(3))) return blocked(c, 3, {b.n, b.count}).to(dtype);
  if (c.dtype(3) != KEEL_U8)
    c.invalid(cat("zero_points is ", dtype_name(c.dtype(3)), "; expected u8 or floats"));
  const Term row = unpacked(blocked(c, 3, {b.n, (b.count * b.bits + 7) / 8}), b.bits);
  return row.slice(1, 0, b.count).to(dtype);
}

void matmul_n_bits(Call& c) {
  const Blocks b = blocks_of(c);
  if (c.has(4)) c.unsupported("operand 4, g_idx");
  if (c.i("weight_prepacked", 0)) c.unsupported("attribute weight_prepacked other than 0");
  if (c.dtype(1) != KEEL_U8) c.unsupported(cat("weights of ", dtype_name(c.dtype(1)), "; expected u8"));
  const Term x(c, 0);
  if (x.rank() < 2) c.unsupported("a vector as operand; expected a matrix or a stack of them");
  if (!c.e.is(x.dims().back(), b.k)) c.invalid(cat("the last dim of its operand differs from K, ", b.k));
  Ids in = {x.v, blocked(c, 1, {b.n, b.count, b.size * b.bits / 8}).v,
            blocked(c, 2, {b.n, b.count}).to(x.dtype()).v};
  if (c.has(3)) in.push_back(zeros_of(c, b, x.dtype()).v);
  const bool rounded = c.i("accuracy_level", 0) == kEightBits;
  const Term y(c.e, c.e.op("matmul_blocks", in, Attrs().i("bits", b.bits).flag("rounded", rounded)));
  c.set(0, c.has(5) ? (y + Term(c, 5)).v : y.v);
}

void dynamic_quantize_matmul(Call& c) {
  expect_matrices(c, 0, 1);
  const DynamicRange a = quantized_dynamically(c.e, c.in(0));
  const Term product = integer_product(Term(c.e, a.x), Term(c, 1), Term(c.e, a.zero), zero_point(c, 3));
  const Term y = product.to(KEEL_F32) * (Term(c.e, a.scale) * spread(c, 2));
  c.set(0, c.has(4) ? (y + Term(c, 4)).v : y.v);
}

void integer_to_float(Call& c) {
  expect_matrices(c, 0, 1);
  const Term scale = spread(c, 2) * spread(c, 3);
  const Term y = integer_product(c, 0, 1, 4, 5).to(scale.dtype()) * scale;
  c.set(0, c.has(6) ? (y + Term(c, 6)).v : y.v);
}

#define MS "com.microsoft."
constexpr Rule kRules[] = {
    {MS "MatMulNBits", 1, matmul_n_bits, "K N accuracy_level bits block_size weight_prepacked"},
    {MS "DynamicQuantizeMatMul", 1, dynamic_quantize_matmul},
    {MS "MatMulIntegerToFloat", 1, integer_to_float},
};

}  // namespace

Rules contrib_products_rules() { return kRules; }

}  // namespace onnx_import
