// grouped_conv.cc: a convolution in groups of a few channels, between plain images at the borders of a
// region: the places of results are the lanes of vectors. oneDNN's would change the layout of both images,
// and fills its vectors with the channels of a group.
//
// A strip of a group's image is copied with its padding. As the stride is 1, the cells that successive
// results see are successive too, across the ends of rows: those between two rows are computed and dropped.
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
  const PlaceLoops* loops = LoopsOfPlaces();
  int64_t pitch = 0, plane = 0;                // cells of a padded row, and of a channel's strip
  int64_t strip = 0, strips = 0, columns = 0;  // rows of results in a strip; its places, whole vectors

  int64_t In() const { return s.PerGroupIn(); }
  int64_t Of() const { return s.PerGroupOut(); }
  int64_t Depth() const { return In() * s.w.Cells(s.w.window); }
  int64_t Rows() const { return strip - 1 + s.w.Reach(0); }
  int64_t Work() const { return In() * plane + Of() * columns; }
  // Results are computed in blocks of two to four channels.
  int64_t Blocks() const { return (Of() + kMostChannelsOfSums - 1) / kMostChannelsOfSums; }
  int64_t First(int64_t block) const { return block * Of() / Blocks(); }
};

// A channel's rows for the strip that begins with row `top` of the results. The cells before and after a row
// are zeros that stay.
void CopyPlane(const Grouped& g, const float* x, int64_t top, float* to) {
  const Window& w = g.s.w;
  const auto inside = [&](int d, int64_t first, int64_t cells) {  // begin and end
    const int64_t begin = std::clamp<int64_t>(w.lo[d] - first, 0, cells);
    return std::pair(begin, std::clamp<int64_t>(w.lo[d] - first + w.image[d], begin, cells));
  };
  const auto [begin, end] = inside(1, 0, g.pitch);
  const auto [first, last] = inside(0, top, g.Rows());
  std::fill_n(to, first * g.pitch, 0.0F);
  std::fill(to + last * g.pitch, to + g.Rows() * g.pitch, 0.0F);
  const int64_t from = (top + first - w.lo[0]) * w.image[1] + begin - w.lo[1];
  g.loops->copy(x + from, w.image[1], last - first, end - begin, to + first * g.pitch + begin, g.pitch);
}

void RunStrip(const keel_call* call, const Grouped& g, int64_t unit, float* work) {
  const Conv& s = g.s;
  const int64_t strip = unit % g.strips, group = unit / g.strips % s.groups,
                image = unit / g.strips / s.groups;
  const int64_t top = strip * g.strip, rows = std::min(g.strip, s.w.out[0] - top);
  const float* x = keel_cpu::In<float>(call, 0) + (image * s.c + group * g.In()) * s.w.Cells(s.w.image);
  for (int64_t c = 0; c < g.In(); c++) CopyPlane(g, x + c * s.w.Cells(s.w.image), top, work + c * g.plane);
  const int64_t vectors = (rows * g.pitch + kPlacesOfVector - 1) / kPlacesOfVector;
  float* made = work + g.In() * g.plane;
  for (int64_t b = 0; b < g.Blocks(); b++) {
    const int64_t o = g.First(b), channel = group * g.Of() + o;
    g.loops->sum({work, g.at.data(), g.Depth(), g.weights.data() + channel * g.Depth(),
                  g.start.empty() ? nullptr : g.start.data() + channel},
                 g.First(b + 1) - o, vectors, made + o * g.columns, g.columns);
  }
  float* y = Out<float>(call, 0) + (image * s.o + group * g.Of()) * s.w.Cells(s.w.out) + top * s.w.out[1];
  for (int64_t o = 0; o < g.Of(); o++)
    g.loops->copy(made + o * g.columns, g.pitch, rows, s.w.out[1], y + o * s.w.Cells(s.w.out), s.w.out[1]);
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

bool Serves(const Conv& s, const BodyValue& w) {
  return s.groups > 1 && s.w.rank == 2 && s.w.stride[0] == 1 && s.w.stride[1] == 1 && IsWorthwhile(s) &&
         w.data != nullptr && AllFinite(static_cast<const float*>(w.data), w.Count());
}

void PlaceCells(Grouped* g) {
  const Window& w = g->s.w;
  for (int64_t c = 0; c < g->In(); c++)
    for (int64_t i = 0; i < w.window[0]; i++)
      for (int64_t j = 0; j < w.window[1]; j++)
        g->at.push_back(c * g->plane + i * w.dil[0] * g->pitch + j * w.dil[1]);
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
  g.pitch = s.w.out[1] - 1 + s.w.Reach(1);
  g.strip = std::clamp<int64_t>(kStrip / g.In() / g.pitch, 1, s.w.out[0]);
  g.strips = (s.w.out[0] + g.strip - 1) / g.strip;
  g.columns = (g.strip * g.pitch + kPlacesOfVector - 1) / kPlacesOfVector * kPlacesOfVector;
  g.plane = g.columns + s.w.Reach(0) * g.pitch + s.w.Reach(1);
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
