// quantize.cc: QuantizeLinear and related ops: floats to small integers and floats and back, with a scale and
// zero point per tensor, per index along an axis, or per block along it.
#include "plugins/onnx/ops/quantize.h"

#include <cmath>

#include "plugins/onnx/import/named.h"

namespace onnx_import {

Limits limits(keel_dt dtype) {
  const int bits = keel::dtype_bits(dtype);
  if (is_unsigned(dtype)) return {0, std::ldexp(1, bits) - 1};
  return {-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1};
}

Term spread(Call& c, size_t i) {
  const Dims d = c.dims(i);
  return d.size() == 1 && d[0] == 1 ? Term(c, i).reshape({}) : Term(c, i);
}

std::optional<Term> zero_point(Call& c, size_t i) {
  return c.has(i) ? std::optional(spread(c, i)) : std::nullopt;
}

Term along(Call& c, size_t i, size_t axis, size_t rank) {
  const Term x = spread(c, i);
  if (x.rank() != 1) return x;
  Dims to(rank, 1);
  to.at(axis) = x.dim(0);
  return x.reshape(to);
}

void requantised(Call& c, const Term& y, size_t zero, size_t axis) {
  const keel_dt to = c.has(zero) ? c.dtype(zero) : c.dtype(0);
  if (!is_integer(to)) c.unsupported(cat("quantization to ", dtype_name(to)));
  Term z = y.op("round");
  if (c.has(zero)) z = z + along(c, zero, axis, y.rank()).to(z.dtype());
  const Limits l = limits(to);
  c.set(0, z.clamp(l.least, l.most).to(to).v);
}

Term integer_product(const Term& x, const Term& y, const std::optional<Term>& x_zero,
                     const std::optional<Term>& y_zero) {
  Ids in = {x.v, y.v};
  if (x_zero || y_zero) {
    const Term rows = x_zero ? *x_zero : x.n(0);
    in.push_back(rows.rank() == 1 ? rows.unsqueeze(1).v : rows.v);
    in.push_back(y_zero ? y_zero->v : y.n(0).v);
  }
  return {x.edit(), x.edit().op("matmul_integer", in)};
}
Term integer_product(Call& c, size_t x, size_t y, size_t x_zero, size_t y_zero) {
  return integer_product(Term(c, x), Term(c, y), zero_point(c, x_zero), zero_point(c, y_zero));
}

namespace {

// Operand i (scale or zero point) as another dtype, reshaped to broadcast over operand 0. Elements of storage
// dtypes can only be moved after the cast.
keel_value broadcast_scale(Call& c, size_t i, keel_dt as) {
  Edit& e = c.e;
  const keel_value given = e.cast(c.in(i), as);
  const Dims dims = c.dims(0), own = c.dims(i);
  const int64_t block = c.i("block_size", 0);
  if (own.empty()) return given;
  if (own.size() == 1 && own[0] == 1) return e.reshape(given, {});
  const auto axis = static_cast<size_t>(c.axis(c.i("axis", 1), c.rank(0)));
  if (block == 0 && own.size() == 1) {
    Dims column(dims.size() - axis, 1);
    column[0] = own[0];
    return e.reshape(given, column);
  }
  if (block < 1 || own.size() != dims.size())
    c.invalid(cat("operand ", i, " has ", own.size(), " dims; expected a scalar, a vector or blocks"));
  Dims apart = own, wide, whole = own;
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(axis) + 1, 1);
  wide = apart;
  wide[axis + 1] = block;
  whole[axis] = e.mul(own[axis], block);
  const keel_value y =
      e.reshape(e.op("broadcast_to", {e.reshape(given, apart)}, Attrs().dims("dims", wide)), whole);
  if (e.is(whole[axis], dims[axis])) return y;
  return e.op("slice", {y},
              Attrs().dims("start", Dims(dims.size(), 0)).dims("stop", dims));  // a shorter last block
}

// x / scale + zero as a small float.
keel_value shortened(Call& c, keel_value x, keel_value scale, keel_value zero, keel_dt to) {
  keel_value y = c.e.op("div", {x, scale});
  if (zero != KEEL_NO_VALUE) y = c.e.op("add", {y, zero});
  return c.e.op("cast", {y}, Attrs().dtype("to", to).flag("saturate", c.i("saturate", 1) != 0));
}

keel_value rounded(Edit& e, keel_value x, keel_value scale, keel_value zero, keel_dt to) {
  const keel_dt dtype = e.dtype(x);
  keel_value y = e.op("round", {e.op("div", {x, scale})});
  if (zero != KEEL_NO_VALUE) y = e.op("add", {y, e.cast(zero, dtype)});
  const Limits l = limits(to);
  return e.op("cast", {e.op("clamp", {y, e.scalar(dtype, l.least), e.scalar(dtype, l.most)})},
              Attrs().dtype("to", to));
}

void quantize(Call& c) {
  keel_dt to = c.has(2) ? c.dtype(2) : keel_dt{KEEL_U8};
  if (c.i("output_dtype", 0)) to = c.type("output_dtype", to);
  const bool whole = is_integer(to) || keel::is_storage_integer(to);
  if (!whole && (!keel::is_storage(to) || to == KEEL_F8E8M0))
    c.unsupported(cat("quantization to ", dtype_name(to)));
  keel_dt inner = c.dtype(1);
  if (c.i("precision", 0)) inner = c.type("precision", inner);
  if (!is_float(inner)) inner = KEEL_F32;
  const keel_value x = c.e.cast(c.in(0), inner), scale = broadcast_scale(c, 1, inner),
                   zero = c.has(2) ? broadcast_scale(c, 2, inner) : KEEL_NO_VALUE;
  c.set(0, whole ? rounded(c.e, x, scale, zero, to) : shortened(c, x, scale, zero, to));
}

void dequantize(Call& c) {
  Edit& e = c.e;
  keel_dt to = c.dtype(1);
  if (c.i("output_dtype", 0)) to = c.type("output_dtype", to);
  const keel_dt from = c.dtype(0);
  // f32 holds the differences of 16-bit integers exactly.
  const bool wide = is_integer(from) && keel::dtype_bits(from) > 16;
  const keel_dt inner = keel::is_storage(from) && !keel::is_storage_integer(from) ? to
                        : wide || to != KEEL_F32                                  ? keel_dt{KEEL_I32}
                                                                                  : keel_dt{KEEL_F32};
  keel_value x = e.cast(c.in(0), inner);
  if (c.has(2)) x = e.op("sub", {x, broadcast_scale(c, 2, inner)});
  c.done("mul", {e.cast(x, to), broadcast_scale(c, 1, to)});
}

}  // namespace

DynamicRange quantized_dynamically(Edit& e, keel_value x) {
  const keel_value zero = e.scalar(KEEL_F32, 0), most = e.scalar(KEEL_F32, 255);
  const keel_value low = e.op("minimum", {e.op("reduce_min", {x}), zero});
  const keel_value high = e.op("maximum", {e.op("reduce_max", {x}), zero});
  const keel_value scale = e.op("div", {e.op("sub", {high, low}), most});
  const keel_value place = e.op("clamp", {e.op("sub", {zero, e.op("div", {low, scale})}), zero, most});
  const keel_value point = e.cast(e.op("round", {place}), KEEL_U8);
  return {rounded(e, x, scale, point, KEEL_U8), scale, point};
}

namespace {

void quantize_dynamically(Call& c) {
  const DynamicRange range = quantized_dynamically(c.e, c.in(0));
  c.set(0, range.x);
  c.set(1, range.scale);
  c.set(2, range.zero);
}

constexpr Rule kRules[] = {
    {"QuantizeLinear", 10, quantize, "axis block_size output_dtype precision saturate"},
    {"DequantizeLinear", 10, dequantize, "axis block_size output_dtype"},
    {"DynamicQuantizeLinear", 11, quantize_dynamically},
};

}  // namespace

Rules quantize_rules() { return kRules; }

}  // namespace onnx_import
