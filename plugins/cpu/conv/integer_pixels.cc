// integer_pixels.cc: conv_integer on channels-last images by the products of matmul/int8_bins.h: the cells
// that a result sees are a row. The zero point of the images: see integer_images.cc.
#include <algorithm>

#include "plugins/cpu/conv/cells.h"
#include "plugins/cpu/conv/integer.h"
#include "plugins/cpu/matmul/int8_bin_products.h"

namespace keel_cpu {
namespace {

BinShape ShapeOf(const Conv& s) {
  const int64_t quads = (s.PerGroupOut() + kQuad - 1) / kQuad;
  return {s.PerGroupIn() * s.w.Cells(s.w.window), s.groups * quads * kQuad};  // of all groups
}
int64_t QuadsOf(const Conv& s) { return ShapeOf(s).Quads() / s.groups; }  // of one

// The weights of each channel in the order of a result's cells. The last quad of a group may have channels of
// zeros.
std::vector<int8_t> RowsOf(const Conv& s, const std::vector<int16_t>& w) {
  const BinShape shape = ShapeOf(s);
  const int64_t in = s.PerGroupIn(), cells = s.w.Cells(s.w.window), row = shape.Groups() * 4;
  std::vector<int8_t> rows(static_cast<size_t>(shape.channels * row));
  for (int64_t o = 0; o < s.o; o++) {
    const int64_t channel = o / s.PerGroupOut() * QuadsOf(s) * kQuad + o % s.PerGroupOut();
    for (int64_t k = 0; k < shape.depth; k++)
      rows[static_cast<size_t>(channel * row + k)] =
          static_cast<int8_t>(w[static_cast<size_t>((o * in + k % in) * cells + k / in)]);
  }
  return rows;
}

struct Pixels {
  Conv s;
  int32_t zero = 0;  // of x
  bool zero_varies = false, is_signed = false;
  const char* weights = nullptr;
  Int8Result result;
  int64_t parts = 1;  // of a group's channels, which do not share panels
  bool pointwise = false;
  BinShape shape;

  bool IsInPlace() const { return pointwise && s.c % 4 == 0; }  // an image's rows of cells are whole groups
  BinRows Results() const { return {s.n * s.w.Cells(s.w.out)}; }
};

// The cells that a result of group g sees, in the order of the window.
void Gather(const Pixels& m, const char* x, int32_t zero, int64_t result, int64_t g, char* to) {
  const Conv& s = m.s;
  const auto in = static_cast<size_t>(s.PerGroupIn());
  const int64_t step = s.w.dil[s.w.rank - 1], wide = s.PerGroupIn();
  const Place place = PlaceOf(s, result);
  x += place.image * s.w.Cells(s.w.image) * s.c + g * wide;
  EachRun(s.w, place, [&](int64_t cell, int64_t at, int64_t n) {
    char* into = to + cell * wide;
    const auto count = static_cast<size_t>(n);
    if (at < 0)
      std::memset(into, zero, count * in);
    else if (step == 1 && s.groups == 1)
      std::memcpy(into, x + at * s.c, count * in);
    else
      for (int64_t i = 0; i < n; i++) std::memcpy(into + i * wide, x + (at + i * step) * s.c, in);
  });
}

struct Workspace {
  Bytes rows;  // of a vector
  BinScratch bins;
  explicit Workspace(const Pixels& m)
      : rows(m.IsInPlace() ? nullptr : Allocate(static_cast<size_t>(kPlaces * m.shape.Groups() * 4))),
        bins(m.shape.depth, m.result) {}
};

// The cells that n results of group g see, as a panel. zero: of x.
void PackPanel(const Pixels& m, const char* x, int32_t zero, int64_t first, int64_t n, int64_t g,
               const Workspace& own) {
  const int64_t groups = m.shape.Groups(), row = groups * 4;
  for (int64_t v = 0; v * kPlaces < n; v++) {
    const int64_t begin = first + v * kPlaces, count = std::min(kPlaces, n - v * kPlaces);
    const char* rows = m.IsInPlace() ? x + begin * row : own.rows.get();
    for (int64_t i = 0; !m.IsInPlace() && i < count; i++) {
      char* to = own.rows.get() + i * row;
      Gather(m, x, zero, begin + i, g, to);
      std::fill(to + m.shape.depth, to + row, 0);
    }
    BinLoops()->columns(rows, row, count, groups, FlipOf(m.is_signed),
                        own.bins.panel.get() + v * kPlaces * 4);
  }
}

void RunPart(const keel_call* call, const Pixels& m, int32_t zero, int64_t unit, const Workspace& own) {
  const int64_t part = unit % m.parts, g = unit / m.parts % m.s.groups, p = unit / m.parts / m.s.groups;
  const int64_t of = m.s.PerGroupOut(), quads = QuadsOf(m.s);
  const auto [result, vectors, n] = m.Results().At(p);
  const int64_t begin = quads * part / m.parts, end = quads * (part + 1) / m.parts,
                channel = g * of + begin * kQuad;
  PackPanel(m, In<char>(call, 0), zero, result, n, g, own);
  const BinPanel panel = {own.bins.panel.get(), vectors, n, MovedZero(zero, m.is_signed)};
  MultiplyBins(panel, m.shape, m.weights, g * quads + begin, g * quads + end,
               std::min(end * kQuad, of) - begin * kQuad, m.result, channel,
               Out<char>(call, 0) + static_cast<uint64_t>(result * m.s.o + channel) * m.result.Bytes(), m.s.o,
               own.bins);
}

keel_rc RunPixels(const keel_call* call) {
  constexpr int64_t kPanel = kMostVectors * kPlaces;
  const Pixels& m = State<Pixels>(call);
  const int32_t zero = m.zero_varies ? ZeroInCall(call, 1, m.is_signed) : m.zero;
  const int64_t cost = kPanel * m.shape.depth * m.s.PerGroupOut() / m.parts / 32;
  ParallelFor(call, m.Results().Panels() * m.s.groups * m.parts, cost, [&](int64_t begin, int64_t end) {
    const Workspace own(m);
    for (int64_t u = begin; u < end; u++) RunPart(call, m, zero, u, own);
  });
  return Done(call);
}

}  // namespace

uint64_t PixelPanelBytes(const Conv& s, const std::vector<int16_t>& w) {
  const bool bytes = std::ranges::all_of(w, [](int16_t x) { return x == static_cast<int8_t>(x); });
  if (BinLoops() == nullptr || !bytes || (s.groups > 1 && s.PerGroupOut() < kQuad)) return 0;
  return BinBytes(ShapeOf(s), RowsOf(s, w).data());
}

void PackPixelPanels(const Conv& s, const std::vector<int16_t>& w, char* to) {
  PackBins(ShapeOf(s), RowsOf(s, w).data(), to);
}

void KeepIntegerPixels(const Conv& s, const IntegerWeights& weights, bool x_signed, const void* panels,
                       Int8Result result, keel_launch* launch) {
  Pixels m;
  m.s = s;
  m.zero = weights.x_zero;
  m.zero_varies = weights.x_zero_varies;
  m.is_signed = x_signed;
  m.weights = static_cast<const char*>(panels);
  m.result = std::move(result);
  m.pointwise = IsPointwise(s);
  m.shape = ShapeOf(s);
  PadToQuad(&m.result);
  m.parts = PartsOf(std::max<int64_t>(m.Results().Panels() * s.groups, 1), QuadsOf(s));
  Keep(launch, std::move(m), Guard<RunPixels>);
}

}  // namespace keel_cpu
