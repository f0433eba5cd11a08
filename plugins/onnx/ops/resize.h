// resize.h: the formulas of Resize for one axis, of numbers known at import (double) and of numbers that the
// run computes (Term).
#pragma once
#include <algorithm>
#include <cmath>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {

struct ResizeMode {
  std::string kind, coordinates, nearest;
  bool antialias, exclude_outside;
  double cubic;
};

// An axis of x whose size, or whose size in the result, is symbolic; scale: 0 if `out` is given.
keel_value resize_open_axis(Call& c, const ResizeMode& m, keel_value x, size_t axis, double scale,
                            keel_dim out);

namespace numbers {
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double abs(double x) { return std::fabs(x); }
inline double positive(double x) { return std::max(x, 0.0); }
inline double pick(bool p, double a, double b) { return p ? a : b; }
inline Term floor(const Term& x) { return x.op("floor"); }
inline Term ceil(const Term& x) { return x.op("ceil"); }
inline Term abs(const Term& x) { return x.op("abs"); }
inline Term positive(const Term& x) { return x.op("maximum", 0); }
inline Term pick(const Term& p, double a, const Term& b) { return select(p, a, b); }
inline Term pick(const Term& p, const Term& a, const Term& b) { return select(p, a, b); }
}  // namespace numbers

// The place in the operand (size `in`) of position i of the result (size `out`).
template <class N>
N coordinate(Call& c, const ResizeMode& m, const N& i, const N& in, const N& out, const N& scale) {
  const N whole = scale * in, half_pixel = (i + 0.5) / scale - 0.5;
  if (m.coordinates == "half_pixel") return half_pixel;
  if (m.coordinates == "pytorch_half_pixel") return numbers::pick(whole == 1, 0, half_pixel);
  if (m.coordinates == "half_pixel_symmetric") return in / 2 * (1 - out / whole) + half_pixel;
  if (m.coordinates == "asymmetric") return i / scale;
  if (m.coordinates == "align_corners") return numbers::pick(whole == 1, 0, i * (in - 1) / (whole - 1));
  c.unsupported(cat("coordinate_transformation_mode '", m.coordinates, "'"));
}

template <class N>
N nearest(Call& c, const std::string& mode, const N& x) {
  if (mode == "round_prefer_floor") return numbers::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") return numbers::floor(x + 0.5);
  if (mode == "floor") return numbers::floor(x);
  if (mode != "ceil") c.unsupported(cat("nearest_mode '", mode, "'"));
  return numbers::ceil(x);
}

template <class N>
N linear_weight(const N& distance) {
  return numbers::positive(1 - numbers::abs(distance));
}

template <class N>
N cubic_weight(const N& distance, double a) {
  const N d = numbers::abs(distance);
  const N near = (d * (a + 2) - (a + 3)) * d * d + 1, far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
  return numbers::pick(d < 1, near, numbers::pick(d < 2, far, d * 0.0));
}

}  // namespace onnx_import
