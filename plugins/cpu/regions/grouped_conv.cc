// grouped_conv.cc: a convolution in groups of a few channels, or of an image of a few channels, between plain
// images at the borders of a region: the places of results are the lanes of vectors. oneDNN's would change
// the layout of both images, and fills its vectors with the channels of a group.
//
// A strip of a group's image is copied with its padding; with a stride of 2, even and odd rows and columns
// apart, which are images of their own. So the cells that successive results see are successive too, across
// the ends of rows: those between two rows are computed and dropped, unless rows are whole vectors.
#include <algorithm>
#include <utility>

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/conv/grouped_loops.h"
#include "plugins/cpu/regions/ops.h"

namespace keel_cpu {
namespace {

constexpr int64_t kStrip = 16384;  // cells of all channels of a strip, which stays in the second-level cache

struct Grouped {
  Conv s;
  std::vector<float> weights = {};  // of each block of channels: [depth, channels]
  std::vector<float> start = {};    // the bias, or none
  std::vector<int64_t> at = {};     // of each number of the window, in the copied strip
  bool by_rows = false;             // results of a row alone, in place
  const PlaceLoops* loops = LoopsOfPlaces();
  int64_t pitch = 0, plane = 0;                // cells of a padded row, and of a channel's strip
  int64_t strip = 0, strips = 0, columns = 0;  // rows of results in a strip; its places, whole vectors

  int64_t In() const { return s.PerGroupIn(); }
  int64_t Of() const { return s.PerGroupOut(); }
  int64_t Depth() const { return In() * s.w.Cells(s.w.window); }
  // Parts of a channel, and the cells of a part that a result sees.
  int64_t Parts() const { return s.w.stride[0] * s.w.stride[1]; }
  int64_t Seen(int d) const { return (s.w.Reach(d) - 1) / s.w.stride[d] + 1; }
  int64_t Rows() const { return strip - 1 + Seen(0); }
  int64_t Planes() const { return In() * Parts(); }
  int64_t Work() const { return Planes() * plane + (by_rows ? 0 : Of() * columns); }
  // Results are computed in blocks of two to four channels.
  int64_t Blocks() const { return (Of() + kMostChannelsOfSums - 1) / kMostChannelsOfSums; }
  int64_t First(int64_t block) const { return block * Of() / Blocks(); }
};

// The cells of a channel whose first ones, in the padded image, are row i and column j, for the strip that
// begins with row `top` of the results. The cells before and after a row are zeros that stay.
void CopyPlane(const Grouped& g, const float* x, int64_t top, int64_t i, int64_t j, float* to) {
  const Window& w = g.s.w;
  const int64_t row = top * w.stride[0] + i - w.lo[0], column = j - w.lo[1];
  const auto inside = [&](int d, int64_t from, int64_t cells) {  // begin and end
    const auto first = [&](int64_t place) {  // cell from there on; divides by a stride of 1 or 2
      return std::clamp<int64_t>((place - from + w.stride[d] - 1) >> (w.stride[d] - 1), 0, cells);
    };
    return std::pair(first(0), first(w.image[d]));
  };
  const auto [begin, end] = inside(1, column, g.pitch);
  const auto [first, last] = inside(0, row, g.Rows());
  std::fill_n(to, first * g.pitch, 0.0F);
  std::fill(to + last * g.pitch, to + g.Rows() * g.pitch, 0.0F);
  const auto copy = w.stride[1] == 1 ? g.loops->copy : g.loops->copy_half;
  const int64_t from = (row + first * w.stride[0]) * w.image[1] + column + begin * w.stride[1];
  copy(x + from, w.stride[0] * w.image[1], last - first, end - begin, to + first * g.pitch + begin, g.pitch);
}

PlaceSums SumsOf(const Grouped& g, const float* cells, int64_t channel) {
  return {cells, g.at.data(), g.Depth(), g.weights.data() + channel * g.Depth(),
          g.start.empty() ? nullptr : g.start.data() + channel};
}

// Sums of all places, also between rows, which are copied without them.
void SumPlaces(const Grouped& g, int64_t first, int64_t rows, float* work, float* y) {
  const Window& w = g.s.w;
  const int64_t vectors = (rows * g.pitch + kPlacesOfVector - 1) / kPlacesOfVector;
  float* made = work + g.Planes() * g.plane;
  for (int64_t b = 0; b < g.Blocks(); b++) {
    const int64_t o = g.First(b);
    g.loops->sum(SumsOf(g, work, first + o), g.First(b + 1) - o, vectors, made + o * g.columns, g.columns);
  }
  for (int64_t o = 0; o < g.Of(); o++)
    g.loops->copy(made + o * g.columns, g.pitch, rows, w.out[1], y + o * w.Cells(w.out), w.out[1]);
}
void SumRows(const Grouped& g, int64_t first, int64_t rows, const float* work, float* y) {
  const Window& w = g.s.w;
  for (int64_t b = 0; b < g.Blocks(); b++)
    for (int64_t r = 0; r < rows; r++) {
      const int64_t o = g.First(b), cells = w.Cells(w.out);
      g.loops->sum(SumsOf(g, work + r * g.pitch, first + o), g.First(b + 1) - o, w.out[1] / kPlacesOfVector,
                   y + o * cells + r * w.out[1], cells);
    }
}

void RunStrip(const keel_call* call, const Grouped& g, int64_t unit, float* work) {
  const Conv& s = g.s;
  const int64_t strip = unit % g.strips, group = unit / g.strips % s.groups,
                image = unit / g.strips / s.groups, first = group * g.Of();
  const int64_t top = strip * g.strip, rows = std::min(g.strip, s.w.out[0] - top);
  const float* x = keel_cpu::In<float>(call, 0) + (image * s.c + group * g.In()) * s.w.Cells(s.w.image);
  float* plane = work;
  for (int64_t c = 0; c < g.In(); c++, x += s.w.Cells(s.w.image))
    for (int64_t i = 0; i < s.w.stride[0]; i++)
      for (int64_t j = 0; j < s.w.stride[1]; j++, plane += g.plane) CopyPlane(g, x, top, i, j, plane);
  float* y = Out<float>(call, 0) + (image * s.o + first) * s.w.Cells(s.w.out) + top * s.w.out[1];
  g.by_rows ? SumRows(g, first, rows, work, y) : SumPlaces(g, first, rows, work, y);
}

keel_rc RunGrouped(const keel_call* call) {
  const Grouped& g = State<Grouped>(call);
  const int64_t cost = g.Of() * g.Depth() * g.columns / 16;
  ParallelFor(call, g.s.n * g.s.groups * g.strips, cost, [&](int64_t begin, int64_t end) {
    const auto bytes = static_cast<size_t>(g.Work()) * sizeof(float);
    const Bytes work = Allocate(bytes);
    std::memset(work.get(), 0, bytes);  // padding; cells after the planes are multiplied, too
    for (int64_t u = begin; u < end; u++) RunStrip(call, g, u, reinterpret_cast<float*>(work.get()));
  });
  return Done(call);
}

// With AVX2, AMD EPYC 7003, one thread, relative to the time of oneDNN and its copies: groups of 4 channels
// take 0.2 to 0.35, of 8 0.37 to 0.6 (0.99 for images of 7x7), of 12 to 16 0.33 to 0.77 and of 32 0.4 to 0.9,
// if few of the places are between rows; else 1.05 to 1.4.
bool IsWorthwhile(const Conv& s) {
  constexpr int64_t kFewest = 2, kMost = 8, kMostOfWide = 16, kMostOfWider = 32, kFewResults = 16;
  const int64_t kept = 100 * s.w.out[1] / (s.w.out[1] - 1 + s.w.Reach(1));  // percent of the places
  const int64_t wide = kept >= 85 ? kMostOfWide : kMost, most = kept >= 92 ? kMostOfWider : wide;
  return LoopsOfPlaces() != nullptr && s.PerGroupOut() >= kFewest && s.PerGroupOut() <= most &&
         s.PerGroupIn() <= most && s.w.Cells(s.w.out) >= kFewResults;
}

// As the first convolution of a network, if it is alone: with a stride of 1, 0.5 of oneDNN's time, with 2 0.7
// to 0.97 (EPYC of Zen 4 limited to AVX2).
bool IsOfFewChannels(const Conv& s) {
  constexpr int64_t kMost = 4, kFewest = 8, kWide = 32;
  return LoopsOfPlaces() != nullptr && s.groups == 1 && s.c <= kMost && s.o >= kFewest &&
         s.w.out[1] >= kWide && s.w.out[1] % kPlacesOfVector == 0 && s.w.stride[0] <= 2 && s.w.stride[1] <= 2;
}

bool Serves(const Conv& s, const BodyValue& w) {
  const bool groups = s.groups > 1 && s.w.stride[0] == 1 && s.w.stride[1] == 1 && IsWorthwhile(s);
  return s.w.rank == 2 && (groups || IsOfFewChannels(s)) && w.data != nullptr &&
         AllFinite(static_cast<const float*>(w.data), w.Count());
}

void PlaceCells(Grouped* g) {
  const Window& w = g->s.w;
  for (int64_t c = 0; c < g->In(); c++)
    for (int64_t i = 0; i < w.window[0]; i++)
      for (int64_t j = 0; j < w.window[1]; j++) {
        const int64_t row = i * w.dil[0], column = j * w.dil[1];
        const int64_t part = row % w.stride[0] * w.stride[1] + column % w.stride[1];
        g->at.push_back((c * g->Parts() + part) * g->plane + row / w.stride[0] * g->pitch +
                        column / w.stride[1]);
      }
}

void PackWeights(const float* w, Grouped* g) {
  for (int64_t group = 0; group < g->s.groups; group++)
    for (int64_t b = 0; b < g->Blocks(); b++)
      for (int64_t k = 0; k < g->Depth(); k++)
        for (int64_t o = g->First(b); o < g->First(b + 1); o++)
          g->weights.push_back(w[(group * g->Of() + o) * g->Depth() + k]);
}

}  // namespace

bool EmitGroupedConv(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s) {
  const BodyValue& w = b.Value(node.in[1]);
  if (b.channels_last || !r.post.empty() || !IsAtBorders(b, node, r) || !Serves(s, w)) return false;
  Grouped g = {s};
  g.start = r.shift;
  g.by_rows = s.groups == 1;
  g.pitch = s.w.out[1] - 1 + g.Seen(1);
  g.strip = std::clamp<int64_t>(kStrip / g.Planes() / g.pitch, 1, s.w.out[0]);
  g.strips = (s.w.out[0] + g.strip - 1) / g.strip;
  g.columns = (g.strip * g.pitch + kPlacesOfVector - 1) / kPlacesOfVector * kPlacesOfVector;
  g.plane = g.columns + g.Seen(0) * g.pitch + g.Seen(1);
  PlaceCells(&g);
  Bytes own;
  PackWeights(static_cast<const float*>(Scaled(w, r.scale, &own, {g.Depth(), s.o})), &g);
  auto made = std::make_unique<OwnLaunch>();
  Keep(&made->launch, std::move(g), Guard<RunGrouped>);
  b.EmitOwn(std::move(made), {node.in[0]}, {r.out},
            {b.BufferIn(node.in[0], b.PlainOf(node.in[0])), b.ResultBuffer(r.out, b.PlainOf(r.out))});
  return true;
}

}  // namespace keel_cpu
