// resize.cc: Resize and Upsample, one axis at a time.
//
// For each position of the result an Axis has a coordinate in the operand, which gives taps: source indices
// and weights. A tap is one gather along the axis with constant indices; the result is the weighted sum of
// the taps (nearest: one tap without weight). An axis of symbolic size is repeated if its factor is an
// integer and the mode allows; otherwise the run computes indices and weights (resize_open.cc).
#include <algorithm>
#include <cmath>

#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/resize.h"

namespace onnx_import {
namespace {

struct Axis {
  size_t at = 0;  // index of the axis
  int64_t in = 0, out = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

double place_of(Call& c, const ResizeMode& m, const Axis& a, double i) {
  const auto in = static_cast<double>(a.in), out = static_cast<double>(a.out), whole = a.scale * in;
  if (m.coordinates != "tf_crop_and_resize") return coordinate(c, m, i, in, out, a.scale);
  const double span = (a.roi_end - a.roi_start) * (in - 1);
  return a.roi_start * (in - 1) + (whole == 1 ? span / 2 : i * span / (whole - 1));
}

// taps[t][i]: tap t of result position i.
struct Taps {
  std::vector<std::vector<double>> index, weight;
};

Taps taps_of(Call& c, const ResizeMode& m, const Axis& a) {
  const double shrink = m.antialias ? std::min(a.scale, 1.0) : 1, reach = m.kind == "cubic" ? 2 : 1;
  const int64_t first = static_cast<int64_t>(std::floor(-reach / shrink)) + 1, count = 2 - 2 * first;
  if (count > 1024) c.unsupported(cat("a scale of ", a.scale, " with antialias"));
  Taps taps;
  taps.index.assign(static_cast<size_t>(count), std::vector<double>(static_cast<size_t>(a.out)));
  taps.weight = taps.index;
  for (size_t i = 0; i < static_cast<size_t>(a.out); i++) {
    const double x = place_of(c, m, a, static_cast<double>(i)), base = std::floor(x);
    double sum = 0;
    for (size_t t = 0; t < taps.index.size(); t++) {
      const double place = base + static_cast<double>(first) + static_cast<double>(t),
                   d = (place - x) * shrink;
      const bool outside = place < 0 || place >= static_cast<double>(a.in);
      double w = m.kind == "cubic" ? cubic_weight(d, m.cubic) : linear_weight(d);
      if (outside && m.exclude_outside) w = 0;
      taps.index[t][i] = std::clamp(place, 0.0, static_cast<double>(a.in - 1));
      sum += taps.weight[t][i] = w;
    }
    for (auto& row : taps.weight) row[i] /= sum;
  }
  return taps;
}

Taps nearest_taps(Call& c, const ResizeMode& m, const Axis& a) {
  Taps taps;
  taps.index.resize(1);
  for (int64_t i = 0; i < a.out; i++) {
    const double place = nearest(c, m.nearest, place_of(c, m, a, static_cast<double>(i)));
    taps.index[0].push_back(std::clamp(place, 0.0, static_cast<double>(a.in - 1)));
  }
  return taps;
}

keel_value stored(Edit& e, keel_dt dtype, const Ints& dims, const std::vector<double>& numbers) {
  Value v;
  v.data = store(dtype, dims, numbers);
  return e.id(v);
}

// Positions with a coordinate outside the operand get the extrapolation value.
keel_value extrapolated(Call& c, const ResizeMode& m, const Axis& a, keel_value y, const Ints& column) {
  std::vector<double> outside;
  for (int64_t i = 0; i < a.out; i++) {
    const double x = place_of(c, m, a, static_cast<double>(i));
    outside.push_back(x < 0 || x > static_cast<double>(a.in - 1));
  }
  const keel_value flags = c.e.cast(stored(c.e, KEEL_I64, column, outside), KEEL_BOOL);
  return c.e.op("select", {flags, c.e.scalar(c.e.dtype(y), c.f("extrapolation_value", 0)), y});
}

keel_value resize_axis(Call& c, const ResizeMode& m, const Axis& a, keel_value x) {
  Edit& e = c.e;
  if (a.in == 0 || a.out < 0 || a.out > (1 << 24))
    c.invalid(cat("axis ", a.at, " cannot go from ", a.in, " to ", a.out));
  const Taps taps = m.kind == "nearest" ? nearest_taps(c, m, a) : taps_of(c, m, a);
  Ints column(e.dims(x).size() - a.at, 1);
  column[0] = a.out;
  keel_value sum = KEEL_NO_VALUE;
  for (size_t t = 0; t < taps.index.size(); t++) {
    const keel_value index = stored(e, KEEL_I64, {a.out}, taps.index[t]);
    keel_value part = e.op("gather", {x, index}, Attrs().i("axis", static_cast<int64_t>(a.at)));
    if (!taps.weight.empty())
      part = e.op("mul", {part, e.cast(stored(e, KEEL_F64, column, taps.weight[t]), e.dtype(x))});
    sum = t ? e.op("add", {sum, part}) : part;
  }
  return m.coordinates == "tf_crop_and_resize" ? extrapolated(c, m, a, sum, column) : sum;
}

keel_value repeat_axis(Edit& e, keel_value x, size_t at, int64_t times) {
  Dims to = e.dims(x), wide = to;
  wide.insert(wide.begin() + static_cast<ptrdiff_t>(at) + 1, times);
  Dims apart = wide;
  apart[at + 1] = 1;
  to[at] = e.mul(to[at], times);
  return e.reshape(e.op("broadcast_to", {e.reshape(x, apart)}, Attrs().dims("dims", wide)), to);
}

// The requested scale or size of each axis.
struct ResizeRequest {
  std::vector<double> scales;
  Dims sizes;
  std::vector<size_t> axes;
  std::vector<double> roi;
};

std::vector<double> stored_list(Call& c, size_t i) {
  const Data* d = c.e.data(c.value(i));
  if (!d) c.unsupported(cat("operand ", i, " must be stored in the model or fixed"));
  std::vector<double> list(static_cast<size_t>(d->count()));
  for (size_t k = 0; k < list.size(); k++)
    if (!number_at(*d, static_cast<int64_t>(k), &list[k])) c.invalid(cat("operand ", i, " has no numbers"));
  return list;
}

// Sizes that keep the aspect ratio: all axes use the smallest (or largest) scale.
void keep_ratio(Call& c, ResizeRequest& w) {
  const std::string policy = c.s("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    c.invalid(cat("keep_aspect_ratio_policy is '", policy, "'"));
  const Dims dims = c.dims(0);
  double scale = policy == "not_larger" ? INFINITY : 0;
  for (size_t k = 0; k < w.axes.size(); k++) {
    if (KEEL_DIM_IS_HANDLE(dims[w.axes[k]]) || KEEL_DIM_IS_HANDLE(w.sizes[k]) || dims[w.axes[k]] == 0)
      c.unsupported("keep_aspect_ratio_policy with symbolic or empty dims");
    const double one = static_cast<double>(w.sizes[k]) / static_cast<double>(dims[w.axes[k]]);
    scale = policy == "not_larger" ? std::min(scale, one) : std::max(scale, one);
  }
  for (size_t k = 0; k < w.axes.size(); k++)
    w.sizes[k] = static_cast<int64_t>(std::floor(scale * static_cast<double>(dims[w.axes[k]]) + 0.5));
  w.scales.assign(w.axes.size(), scale);
}

// The integer factor of a symbolic axis, or 0.
int64_t repeat_factor(Call& c, const ResizeRequest& w, size_t k, keel_dim in) {
  if (w.sizes.empty())
    return std::floor(w.scales[k]) == w.scales[k] && w.scales[k] >= 1 && w.scales[k] < 1024
               ? static_cast<int64_t>(w.scales[k])
               : 0;
  for (int64_t times = 1; times <= 16; times++)
    if (c.e.is(w.sizes[k], c.e.mul(in, times))) return times;
  return 0;
}

bool repeats(const ResizeMode& m) {
  if (m.kind != "nearest") return false;
  if (m.coordinates == "asymmetric") return m.nearest == "floor";
  return m.coordinates.find("half_pixel") != std::string::npos && m.nearest.rfind("round_", 0) == 0;
}

void apply(Call& c, const ResizeMode& m, ResizeRequest w) {
  const Dims dims = c.dims(0);
  if ((w.sizes.empty() ? w.scales.size() : w.sizes.size()) != w.axes.size())
    c.invalid(cat("expected a scale or a size for each of ", w.axes.size(), " axes"));
  if (!w.sizes.empty()) keep_ratio(c, w);
  keel_value x = c.in(0);
  for (size_t k = 0; k < w.axes.size(); k++) {
    const keel_dim in = dims[w.axes[k]];
    const bool symbolic = KEEL_DIM_IS_HANDLE(in) || (!w.sizes.empty() && KEEL_DIM_IS_HANDLE(w.sizes[k]));
    if (symbolic) {
      const int64_t times = repeat_factor(c, w, k, in);
      if (times > 1 && repeats(m))
        x = repeat_axis(c.e, x, w.axes[k], times);
      else if (times != 1)
        x = resize_open_axis(c, m, x, w.axes[k], w.scales.empty() ? 0 : w.scales[k],
                             w.sizes.empty() ? 0 : w.sizes[k]);
      continue;
    }
    Axis a;
    a.at = w.axes[k];
    a.in = in;
    a.scale = w.scales.empty()
                  ? static_cast<double>(w.sizes[k]) / static_cast<double>(std::max<int64_t>(in, 1))
                  : w.scales[k];
    if (!(a.scale > 0) || a.scale > 1e6) c.invalid(cat("axis ", a.at, " has the scale ", a.scale));
    a.out =
        w.sizes.empty() ? static_cast<int64_t>(std::floor(static_cast<double>(in) * a.scale)) : w.sizes[k];
    if (w.roi.size() == 2 * w.axes.size()) a.roi_start = w.roi[k], a.roi_end = w.roi[k + w.axes.size()];
    if (a.out == a.in && a.scale == 1 && m.coordinates != "tf_crop_and_resize") continue;
    x = resize_axis(c, m, a, x);
  }
  c.set(0, x);
}

std::vector<size_t> all_axes(Call& c) {
  std::vector<size_t> axes;
  for (size_t k = 0; k < c.dims(0).size(); k++) axes.push_back(k);
  return axes;
}

std::string kind_of(Call& c) {
  const std::string kind = c.s("mode", "nearest");
  if (kind != "nearest" && kind != "linear" && kind != "cubic") c.unsupported(cat("mode '", kind, "'"));
  return kind;
}

void resize(Call& c) {
  const ResizeMode m = {kind_of(c),
                        c.s("coordinate_transformation_mode", "half_pixel"),
                        c.s("nearest_mode", "round_prefer_floor"),
                        c.i("antialias", 0) != 0,
                        c.i("exclude_outside", 0) != 0,
                        c.f("cubic_coeff_a", -0.75)};
  ResizeRequest w;
  w.axes = all_axes(c);
  if (c.has_attribute("axes")) {
    w.axes.clear();
    for (int64_t axis : c.ints("axes")) w.axes.push_back(static_cast<size_t>(c.axis(axis, c.rank(0))));
  }
  if (c.has(3))
    w.sizes = c.list(3);
  else if (c.has(2))
    w.scales = stored_list(c, 2);
  if (c.has(1) && m.coordinates == "tf_crop_and_resize") w.roi = stored_list(c, 1);
  apply(c, m, w);
}

// Resize 10 and Upsample: scales only, asymmetric coordinates.
void upsample(Call& c) {
  ResizeRequest w;
  w.axes = all_axes(c);
  if (c.has(1)) {
    w.scales = stored_list(c, 1);
  } else if (const Attribute* scales = c.attribute("scales")) {
    w.scales.assign(scales->floats.begin(), scales->floats.end());
  } else if (c.has_attribute("height_scale") || c.has_attribute("width_scale")) {  // opset 1
    w.scales = {1, 1, c.f("height_scale", 1), c.f("width_scale", 1)};
  }
  apply(c, {kind_of(c), "asymmetric", "floor", false, false, -0.75}, w);
}

constexpr Rule kRules[] = {
    {"Resize", 11, resize,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
     "keep_aspect_ratio_policy mode nearest_mode",
     bit(1) | bit(2) | bit(3)},
    {"Resize", 10, upsample, "mode", bit(1)},
    {"Upsample", 9, upsample, "mode", bit(1)},
    {"Upsample", 7, upsample, "mode scales"},
    {"Upsample", 1, upsample, "height_scale mode width_scale"},
};

}  // namespace

Rules resize_rules() { return kRules; }

}  // namespace onnx_import
