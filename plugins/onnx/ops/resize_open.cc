// resize_open.cc: Resize along an axis of symbolic size. The run computes, in doubles, the taps of each
// position of the result: cells of the operand and their weights.
#include "plugins/onnx/ops/resize.h"

namespace onnx_import {
namespace {

constexpr int64_t kParts = 1024;

// floor(in * scale), for a scale that is a multiple of 1/1024.
keel_dim scaled(Call& c, keel_dim in, double scale, size_t axis) {
  const double parts = scale * kParts;
  if (!(scale > 0) || scale > 1024 || std::floor(parts) != parts)
    c.unsupported(
        cat("axis ", axis, " has a symbolic size and the scale ", scale,
            ", which is no multiple of 1/1024 up to 1024; give the size a number with --dim or --shape"));
  return c.e.div(c.e.mul(in, static_cast<int64_t>(parts)), kParts);
}

struct OpenAxis {
  Term in, place;  // f64: the size of the axis; of each position of the result, the place in the operand
  size_t at;
};

Term taken(const OpenAxis& a, const Term& x, const Term& cell) {
  const Term inside = cell.op("minimum", a.in - 1).op("maximum", 0).to(KEEL_I64);
  return x.gather(inside, static_cast<int64_t>(a.at));
}

Term weighted(const ResizeMode& m, const OpenAxis& a, const Term& x) {
  const bool cubic = m.kind == "cubic";
  const Term base = a.place.op("floor");
  std::vector<Term> cells, weights;
  for (int t = cubic ? -1 : 0; t <= (cubic ? 2 : 1); t++) {
    const Term cell = base + t, d = cell - a.place, w = cubic ? cubic_weight(d, m.cubic) : linear_weight(d);
    const Term outside = (cell < 0.0) | cell.op("greater_equal", a.in);
    cells.push_back(cell), weights.push_back(m.exclude_outside ? select(outside, 0.0, w) : w);
  }
  Term total = weights[0];
  for (size_t t = 1; t < weights.size(); t++) total = total + weights[t];
  Dims column(x.rank() - a.at, 1);
  column[0] = a.place.dim(0);
  std::vector<Term> parts;
  for (size_t t = 0; t < cells.size(); t++)
    parts.push_back(taken(a, x, cells[t]) * (weights[t] / total).to(x.dtype()).reshape(column));
  Term sum = parts[0];
  for (size_t t = 1; t < parts.size(); t++) sum = sum + parts[t];
  return sum;
}

}  // namespace

keel_value resize_open_axis(Call& c, const ResizeMode& m, keel_value x, size_t axis, double scale,
                            keel_dim out) {
  if (m.antialias || m.coordinates == "tf_crop_and_resize")
    c.unsupported(cat("axis ", axis, " has a symbolic size, which excludes ",
                      m.antialias ? "antialias" : "tf_crop_and_resize",
                      "; give it a number with --dim or --shape"));
  Edit& e = c.e;
  const Term operand(e, x);
  const keel_dim in = operand.dim(axis);
  if (scale != 0) out = scaled(c, in, scale, axis);
  const Term wide(e, e.number(in, KEEL_F64)), narrow(e, e.number(out, KEEL_F64));
  const Term factor = scale != 0 ? wide.n(scale) : narrow / wide;
  const Term i = counting_term(e, out, KEEL_F64);
  const OpenAxis a = {wide, coordinate(c, m, i, wide, narrow, factor), axis};
  if (m.kind == "nearest") return taken(a, operand, nearest(c, m.nearest, a.place)).v;
  return weighted(m, a, operand).v;
}

}  // namespace onnx_import
