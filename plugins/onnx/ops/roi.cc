// roi.cc: RoiAlign: a grid of samples in each region of an image, averaged or maximised per bin. MaxRoiPool:
// the largest pixel of each bin.
#include <cmath>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

struct Regions {
  Term rois;  // [r, 4]
  keel_dim count;
  int64_t samples;
  double scale;
  bool half;
};

struct Corner {
  Term low, high;     // i64 [r, places]
  Term above, below;  // weights of high and low; 0 outside the image
};

// Places along one axis: bins of the region, each with samples at equal distances.
Corner corners(const Regions& g, int64_t first, int64_t bins, keel_dim size) {
  const auto column = [&](int64_t k) { return g.rois.slice(1, k, k + 1) * g.scale - (g.half ? 0.5 : 0.0); };
  const Term start = column(first);
  Term extent = column(first + 2) - start;
  if (!g.half) extent = extent.op("maximum", 1.0);
  const Term at = counting_term(g.rois.edit(), bins * g.samples, g.rois.dtype());
  const Term place = start + (at + 0.5) * (extent / static_cast<double>(bins * g.samples));
  const Term n = place.size(size);
  const Term inside = (place < -1).op("logical_not") & (place > n).op("logical_not");
  const Term y = place.op("maximum", 0.0).op("minimum", n - 1);
  const Term low = y.op("floor"), t = y - low;
  const Term index = low.to(KEEL_I64), last = index.size(size) - 1, cell = index.clamp(index.n(0), last);
  return {cell, (cell + 1).op("minimum", last), select(inside, t, 0), select(inside, 1.0 - t, 0)};
}

Regions regions(Call& c) {
  const std::string mode =
      c.s("coordinate_transformation_mode", c.opset < 16 ? "output_half_pixel" : "half_pixel");
  if (mode != "half_pixel" && mode != "output_half_pixel")
    c.invalid(
        cat("coordinate_transformation_mode is '", mode, "'; expected half_pixel or output_half_pixel"));
  const int64_t samples = c.i("sampling_ratio", 0);
  if (samples < 1)
    c.unsupported("sampling_ratio 0: the number of samples depends on data; set it to 1 or more");
  const Term rois = Term(c, 1).to(wide(c.dtype(1)));
  if (rois.rank() != 2) c.invalid(cat("rois has ", rois.rank(), " dims; expected [regions, 4]"));
  return {rois, rois.dim(0), samples, c.f("spatial_scale", 1), mode == "half_pixel"};
}

void roi_align(Call& c) {
  Edit& e = c.e;
  const Dims d = c.dims(0);
  const int64_t rows = c.i("output_height", 1), columns = c.i("output_width", 1);
  const std::string mode = c.s("mode", "avg");
  if (mode != "avg" && mode != "max") c.invalid(cat("mode is '", mode, "'; expected avg or max"));
  if (d.size() != 4) c.invalid(cat("x has ", d.size(), " dims; expected [batch, channels, height, width]"));
  const Regions g = regions(c);
  if (rows < 1 || columns < 1 || rows > 1 << 16 || columns > 1 << 16 || g.samples > 1 << 10)
    c.invalid("output_height, output_width and sampling_ratio must be positive sizes");
  const Corner y = corners(g, 1, rows, d[2]), x = corners(g, 0, columns, d[3]);
  const int64_t s = g.samples;
  const Dims places = {g.count, rows * s, columns * s};
  const Term image =
      Term(c, 0).to(g.rois.dtype()).transpose({0, 2, 3, 1}).reshape({e.product({d[0], d[2], d[3]}), d[1]});
  const Term batch = Term(c, 2).to(KEEL_I64).reshape({g.count, 1, 1}) * Term(e, e.number(d[2], KEEL_I64));
  const bool most = mode == "max";
  std::vector<Term> sums;
  for (int k = 0; k < 4; k++) {  // the four cells around each place
    const Term row = (k & 1 ? y.high : y.low).unsqueeze(2), column = (k & 2 ? x.high : x.low).unsqueeze(1);
    const Term index = ((batch + row) * row.size(d[3]) + column).reshape(places);
    const Term weight = (k & 1 ? y.above : y.below).unsqueeze(2) * (k & 2 ? x.above : x.below).unsqueeze(1);
    const Term part = image.gather(index, 0) * weight.unsqueeze(3);
    if (sums.empty())
      sums.push_back(part);
    else
      sums[0] = most ? sums[0].op("maximum", part) : sums[0] + part;
  }
  const Term bins = sums[0].reshape({g.count, rows, s, columns, s, d[1]});
  const Term out = most ? bins.reduced("reduce_max", {2, 4}) : bins.sum({2, 4}) / static_cast<double>(s * s);
  c.set(0, out.transpose({0, 3, 1, 2}).to(c.dtype(0)).v);
}

// ---- MaxRoiPool

// Whether a pixel along one axis is in a bin: bool[regions, bins, size].
Term pixels_in_bins(const Term& rois, int64_t first, int64_t bins, keel_dim size) {
  Edit& e = rois.edit();
  const auto edge = [&](int64_t k) {  // halves are rounded away from zero
    const Term x = rois.slice(1, k, k + 1);
    return x.op("sign") * (x.op("abs") + 0.5).op("floor");
  };
  const Term start = edge(first), extent = (edge(first + 2) - start + 1).op("maximum", 1.0);
  const Term bin = counting_term(e, bins, KEEL_F32), width = extent / static_cast<double>(bins);
  const Term from = (bin * width).op("floor") + start, until = ((bin + 1) * width).op("ceil") + start;
  const Term pixel = counting_term(e, size, KEEL_F32);
  return pixel.op("greater_equal", from.unsqueeze(2)) & (pixel < until.unsqueeze(2));
}

// Along one axis and then along the other; bins without pixels are 0.
void max_roi_pool(Call& c) {
  const Ints bins = c.ints("pooled_shape");
  const Dims d = c.dims(0);
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1 || bins[0] > 1 << 16 || bins[1] > 1 << 16)
    c.invalid("pooled_shape must be two positive sizes");
  if (d.size() != 4) c.invalid(cat("x has ", d.size(), " dims; expected [batch, channels, height, width]"));
  const Term given(c, 1), x(c, 0);
  if (given.rank() != 2 || !c.e.may_be(given.dim(1), 5)) c.invalid("rois is not [regions, 5]");
  const Term rois = given.to(KEEL_F32).slice(1, 1, 5) * c.f("spatial_scale", 1);
  const Term rows = pixels_in_bins(rois, 1, bins[0], d[2]), columns = pixels_in_bins(rois, 0, bins[1], d[3]);
  const Term image = x.gather(given.slice(1, 0, 1).reshape({rois.dim(0)}).to(KEEL_I64), 0);
  const Term wide =
      select(columns.unsqueeze(1).unsqueeze(1), image.unsqueeze(3), -INFINITY).reduced("reduce_max", {4});
  const Term all =
      select(rows.unsqueeze(1).unsqueeze(4), wide.unsqueeze(2), -INFINITY).reduced("reduce_max", {3});
  const Term some =
      rows.reduced("reduce_max", {2}).unsqueeze(2) & columns.reduced("reduce_max", {2}).unsqueeze(1);
  c.set(0, select(some.unsqueeze(1), all, 0).v);
}

constexpr const char* kOld = "mode output_height output_width sampling_ratio spatial_scale";
constexpr Rule kRules[] = {
    {"RoiAlign", 16, roi_align,
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
    {"RoiAlign", 10, roi_align, kOld},
    {"MaxRoiPool", 1, max_roi_pool, "pooled_shape spatial_scale"},
};

}  // namespace

Rules roi_rules() { return kRules; }

}  // namespace onnx_import
