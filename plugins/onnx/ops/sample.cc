// sample.cc: GridSample, AffineGrid and DeformConv: images read between their cells.
#include "plugins/onnx/ops/sample.h"

#include <functional>

#include "plugins/onnx/ops/window.h"

namespace onnx_import {

namespace {

Term as_index(const Term& place, keel_dim size) {
  const Term i = place.to(KEEL_I64);
  return i.clamp(i.n(0), i.size(size).op("maximum", i.n(1)) - 1);
}

Term within(const Term& place, keel_dim size) {
  return place.op("greater_equal", 0) & place.op("less_equal", place.size(size) - 1);
}

}  // namespace

Taps linear_taps(const Term& place, keel_dim size) {
  const Term low = place.op("floor"), high = low + 1, t = place - low;
  return {{as_index(low, size), select(within(low, size), 1.0 - t, 0)},
          {as_index(high, size), select(within(high, size), t, 0)}};
}

Term channels_last(const Term& x) {
  const Dims d = x.dims();
  return x.reshape({d[0], d[1], x.edit().product(d, 2)}).transpose({0, 2, 1});
}

Term sampled(const Term& image, const std::vector<Taps>& taps, const Dims& size) {
  std::vector<Term> sums;
  const std::function<void(size_t, const Tap*)> visit = [&](size_t k, const Tap* so_far) {
    if (k < taps.size()) {
      for (const Tap& tap : taps[k]) {
        const Tap next =
            so_far ? Tap{so_far->index * tap.index.size(size[k]) + tap.index, so_far->weight * tap.weight}
                   : tap;
        visit(k + 1, &next);
      }
      return;
    }
    const Term rows = image.op("gather_nd", so_far->index.unsqueeze(2), Attrs().i("batch", 1));
    const Term part = rows * so_far->weight.unsqueeze(2);
    if (sums.empty())
      sums.push_back(part);
    else
      sums[0] = sums[0] + part;
  };
  visit(0, nullptr);
  return sums.at(0);
}

namespace {

enum class Border { kZeros, kEdge, kReflection };
enum class Mode { kNearest, kLinear, kCubic };

struct Sampling {
  Mode mode;
  Border border;
  bool align;  // -1 and 1 are the centres of the corner cells, not their outer edges
};

Sampling sampling_of(Call& c) {
  const std::string mode = c.s("mode", "linear"), border = c.s("padding_mode", "zeros");
  Sampling s = {Mode::kLinear, Border::kZeros, c.i("align_corners", 0) != 0};
  if (mode == "nearest")
    s.mode = Mode::kNearest;
  else if (mode == "cubic" || mode == "bicubic")
    s.mode = Mode::kCubic;
  else if (mode != "linear" && mode != "bilinear")
    c.invalid(cat("mode is '", mode, "'; expected nearest, linear or cubic"));
  if (border == "border")
    s.border = Border::kEdge;
  else if (border == "reflection")
    s.border = Border::kReflection;
  else if (border != "zeros")
    c.invalid(cat("padding_mode is '", border, "'; expected zeros, border or reflection"));
  return s;
}

// Places outside the image, mirrored at its borders as often as necessary.
Term reflected(const Term& x, keel_dim size, bool align) {
  const Term low = x.n(align ? 0 : -0.5), range = align ? x.size(size) - 1 : x.size(size);
  const Term period = select(range > 0, range * 2, 1), t = (x - low).op("mod", period);
  return select(range > 0, low + t.op("minimum", period - t), low);
}

Term bounded(const Term& place, keel_dim size, const Sampling& s) {
  if (s.border == Border::kEdge) return place.clamp(place.n(0), place.size(size) - 1);
  return s.border == Border::kReflection ? reflected(place, size, s.align) : place;
}

// The weights of cubic convolution (Keys 1981) with a = -0.75, at distances 1 + t, t, 1 - t and 2 - t.
std::vector<Term> cubic_weights(const Term& t) {
  constexpr double a = -0.75;
  const auto far = [](const Term& d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
  const auto near = [](const Term& d) { return (d * (a + 2) - (a + 3)) * d * d + 1; };
  return {far(t + 1), near(t), near(1.0 - t), far(2.0 - t)};
}

Taps taps_of(const Term& normal, keel_dim size, const Sampling& s) {
  const Term n = normal.size(size);
  const Term raw = s.align ? (normal + 1) / 2 * (n - 1) : ((normal + 1) * n - 1) / 2;
  // At an edge, cubic interpolation bounds its four cells only, as PyTorch and ONNX Runtime do.
  const bool free = s.mode == Mode::kCubic && s.border == Border::kEdge;
  const Term place = free ? raw : bounded(s.mode == Mode::kNearest ? raw.op("round") : raw, size, s);
  const auto tap = [&](const Term& cell, const Term& weight) -> Tap {
    const Term at = bounded(cell, size, s);
    return {as_index(at, size), s.border == Border::kZeros ? select(within(at, size), weight, 0) : weight};
  };
  if (s.mode == Mode::kNearest) return {tap(place, place.n(1).broadcast(place.dims()))};
  const Term low = place.op("floor"), t = place - low;
  if (s.mode == Mode::kLinear) return {tap(low, 1.0 - t), tap(low + 1, t)};
  const std::vector<Term> w = cubic_weights(t);
  return {tap(low - 1, w[0]), tap(low, w[1]), tap(low + 1, w[2]), tap(low + 2, w[3])};
}

void grid_sample(Call& c) {
  Edit& e = c.e;
  const Sampling s = sampling_of(c);
  const Dims d = c.dims(0), g = c.dims(1);
  if (d.size() < 3 || g.size() != d.size())
    c.invalid(cat("x has ", d.size(), " dims and grid ", g.size(), "; expected the same number, at least 3"));
  const size_t n = d.size() - 2;
  if (!KEEL_DIM_IS_HANDLE(g.back()) && g.back() != static_cast<int64_t>(n))
    c.invalid(cat("grid has ", g.back(), " coordinates for an image of ", n, " dims"));
  Dims out(g.begin() + 1, g.end() - 1);
  const Term places =
      Term(c, 1).to(wide(c.dtype(1))).reshape({g[0], e.product(out), static_cast<int64_t>(n)});
  std::vector<Taps> taps;
  for (size_t k = 0; k < n; k++) {  // the last coordinate is that of the first image dim
    const auto at = static_cast<int64_t>(n - 1 - k);
    taps.push_back(taps_of(places.slice(2, at, at + 1).reshape({g[0], e.product(out)}), d[k + 2], s));
  }
  const Term x = channels_last(Term(c, 0).to(places.dtype()));
  Dims to = {d[0], d[1]};
  to.insert(to.end(), out.begin(), out.end());
  const Dims image(d.begin() + 2, d.end());
  c.set(0, sampled(x, taps, image).transpose({0, 2, 1}).reshape(to).to(c.dtype(0)).v);
}

// Places of the cells of an image in [-1, 1], transformed by theta [n, r, r + 1].
void affine_grid(Call& c) {
  Edit& e = c.e;
  const Dims size = c.list(1), theta = c.dims(0);
  const bool align = c.i("align_corners", 0) != 0;
  const size_t r = size.size() - 2;
  if (size.size() < 4 || size.size() > 5 || theta.size() != 3)
    c.invalid(
        cat("size has ", size.size(), " entries and theta ", theta.size(), " dims; expected 4 or 5, and 3"));
  const Dims image(size.begin() + 2, size.end());
  const keel_dt dtype = wide(c.dtype(0));
  const keel_dim cells = e.product(image);
  std::vector<Term> columns;
  for (size_t k = r; k-- > 0;) {  // the last image dim is the first coordinate
    const Term at = counting_term(e, image, static_cast<int64_t>(k), dtype), n = at.size(image[k]);
    columns.push_back(
        (align ? at * 2 / (n - 1).op("maximum", 1) - 1 : (at * 2 + 1) / n - 1).reshape({cells, 1}));
  }
  columns.push_back(filled(e, dtype, 1, {cells, 1}));
  const Term y = concat(columns, 1).op("matmul", Term(c, 0).to(dtype), Attrs().flag("tb", true));
  Dims to = {theta[0]};
  to.insert(to.end(), image.begin(), image.end());
  to.push_back(static_cast<int64_t>(r));
  c.set(0, y.reshape(to).to(c.dtype(0)).v);
}

// ---- DeformConv: each cell of the window reads at a place moved by an offset.

// [n, groups of offsets, cells of the window, out] of operand i, with `parts` values at each cell.
Term by_cell(Call& c, size_t i, const Dims& to, int64_t parts, int64_t part) {
  Dims split = {to[0], to[1], to[2], parts, to[3]};
  const Term all = Term(c, i).to(wide(c.dtype(0))).reshape(split);
  return all.slice(3, part, part + 1).reshape(to);
}

void deform_conv(Call& c) {
  Edit& e = c.e;
  const Dims d = c.dims(0), weights = c.dims(1), moved = c.dims(2);
  if (d.size() != 4 || weights.size() != 4 || moved.size() != 4)
    c.unsupported(cat("an image of ", d.size(), " dims; expected [batch, channels, height, width]"));
  const Ints size = {static_dim(c, weights[2], "the window"), static_dim(c, weights[3], "the window")};
  const Window w = window(c, {d[2], d[3]}, size);
  const int64_t groups = c.i("group", 1), parts = c.i("offset_group", 1), cells = size[0] * size[1];
  if (groups < 1 || parts < 1) c.invalid("group and offset_group must be positive");
  const keel_dim out = e.mul(moved[2], moved[3]);
  const Dims to = {d[0], parts, cells, out};
  const Dims grid = {size[0], size[1], moved[2], moved[3]};
  std::vector<Taps> taps;
  for (size_t k = 0; k < 2; k++) {
    const keel_dt dtype = wide(c.dtype(0));
    const auto axis = static_cast<int64_t>(k);
    const Term base = counting_term(e, grid, axis, dtype) * static_cast<double>(w.dilation[k]) +
                      counting_term(e, grid, axis + 2, dtype) * static_cast<double>(w.stride[k]);
    const Term place = (base - base.size(w.lo[k])).reshape({cells, out}) + by_cell(c, 2, to, 2, axis);
    taps.push_back(linear_taps(place.reshape({e.mul(d[0], parts), e.mul(cells, out)}), d[k + 2]));
  }
  const keel_dim deep = e.div(d[1], parts);
  const Term x = Term(c, 0).to(wide(c.dtype(0))).reshape({e.mul(d[0], parts), deep, d[2], d[3]});
  Term y = sampled(channels_last(x), taps, {d[2], d[3]}).reshape({d[0], parts, cells, out, deep});
  if (c.has(4)) y = y * by_cell(c, 4, to, 1, 0).unsqueeze(4);
  const keel_dim inner = e.mul(weights[1], cells);
  y = y.transpose({0, 1, 4, 2, 3}).reshape({d[0], groups, inner, out});
  const Term m = Term(c, 1).to(y.dtype()).reshape({groups, e.div(weights[0], groups), inner});
  Term sum = m.op("matmul", y).reshape({d[0], weights[0], moved[2], moved[3]});
  if (c.has(3)) sum = sum + Term(c, 3).to(sum.dtype()).reshape({weights[0], 1, 1});
  c.set(0, sum.to(c.dtype(0)).v);
}

constexpr const char* kSample = "align_corners mode padding_mode";
constexpr Rule kRules[] = {
    {"GridSample", 16, grid_sample, kSample},
    {"AffineGrid", 20, affine_grid, "align_corners", bit(1)},
    {"DeformConv", 19, deform_conv, "dilations group kernel_shape offset_group pads strides"},
};

}  // namespace

Rules sample_rules() { return kRules; }

}  // namespace onnx_import
