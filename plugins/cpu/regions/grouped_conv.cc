// grouped_conv.cc: a convolution in groups of a few channels, between plain images at the borders of a
// region, by the kernels of the own products: the weights of a group times panels of the cells that results
// see. oneDNN's would change the layout of both images, and fills its vectors with the channels of a group.
//
// A strip of a group's image is copied with its padding. As the stride is 1, the cells that successive
// results see are successive too, across the ends of rows: those between two rows are computed and dropped.
#include <algorithm>

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/regions/ops.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

constexpr int64_t kPanel = 16;    // columns of a panel with AVX2
constexpr int64_t kStrip = 4096;  // cells of a channel in a strip, which stays in the second-level cache

struct Grouped {
  Conv s;
  int64_t block = 0;  // channels of results at a time
  std::vector<float> weights = {};
  std::vector<float> start = {};  // a panel's columns for each channel of the bias, or none
  const MatmulOp* op = MatmulLoops(KEEL_F32);
  int64_t pitch = 0, plane = 0;                // cells of a padded row, and of a channel's strip
  int64_t strip = 0, strips = 0, columns = 0;  // rows of results in a strip; columns of its products

  int64_t In() const { return s.PerGroupIn(); }
  int64_t Of() const { return s.PerGroupOut(); }
  int64_t Depth() const { return In() * s.w.Cells(s.w.window); }
  int64_t Rows() const { return strip - 1 + s.w.Reach(0); }
  int64_t Work() const { return In() * plane + Depth() * kPanel + Of() * columns; }
};

// A channel's rows for the strip that begins with row `top` of the results.
void CopyPlane(const Grouped& g, const float* x, int64_t top, float* to) {
  const Window& w = g.s.w;
  const int64_t begin = std::clamp<int64_t>(w.lo[1], 0, g.pitch),
                end = std::clamp<int64_t>(w.lo[1] + w.image[1], begin, g.pitch);
  for (int64_t r = 0; r < g.Rows(); r++, to += g.pitch) {
    const int64_t y = top + r - w.lo[0];
    if (y < 0 || y >= w.image[0]) {
      std::fill_n(to, g.pitch, 0.0F);
      continue;
    }
    std::fill_n(to, begin, 0.0F);
    std::copy_n(x + y * w.image[1] + begin - w.lo[1], end - begin, to + begin);
    std::fill_n(to + end, g.pitch - end, 0.0F);
  }
}

// The cells that the results from `at` on see, for each number of the window.
void PackCells(const Grouped& g, const float* planes, int64_t at, float* to) {
  const Window& w = g.s.w;
  for (int64_t c = 0; c < g.In(); c++)
    for (int64_t i = 0; i < w.window[0]; i++)
      for (int64_t j = 0; j < w.window[1]; j++, to += kPanel)
        std::memcpy(to, planes + c * g.plane + at + i * w.dil[0] * g.pitch + j * w.dil[1],
                    kPanel * sizeof(float));
}

void RunStrip(const keel_call* call, const Grouped& g, int64_t unit, float* work) {
  const Conv& s = g.s;
  const int64_t strip = unit % g.strips, group = unit / g.strips % s.groups,
                image = unit / g.strips / s.groups;
  const int64_t top = strip * g.strip, rows = std::min(g.strip, s.w.out[0] - top);
  const float* x = keel_cpu::In<float>(call, 0) + (image * s.c + group * g.In()) * s.w.Cells(s.w.image);
  float *panel = work + g.In() * g.plane, *made = panel + g.Depth() * kPanel;
  for (int64_t c = 0; c < g.In(); c++) CopyPlane(g, x + c * s.w.Cells(s.w.image), top, work + c * g.plane);
  const int64_t depth = g.Depth();
  const float* weights = g.weights.data() + group * g.Of() * depth;
  const float* start = g.start.empty() ? nullptr : g.start.data() + group * g.Of() * kPanel;
  for (int64_t p = 0; p * kPanel < rows * g.pitch; p++) {
    PackCells(g, work, p * kPanel, panel);
    for (int64_t o = 0; o < g.Of(); o += g.block)
      g.op->multiply({weights + o * depth, depth, 1},
                     {panel, kPanel, {}, {start == nullptr ? start : start + o * kPanel, kPanel}},
                     std::min(g.block, g.Of() - o), g.columns, depth, p, false, made + o * g.columns);
  }
  float* y = Out<float>(call, 0) + (image * s.o + group * g.Of()) * s.w.Cells(s.w.out) + top * s.w.out[1];
  for (int64_t o = 0; o < g.Of(); o++)
    for (int64_t r = 0; r < rows; r++)
      std::copy_n(made + o * g.columns + r * g.pitch, s.w.out[1],
                  y + o * s.w.Cells(s.w.out) + r * s.w.out[1]);
}

keel_rc RunGrouped(const keel_call* call) {
  const Grouped& g = State<Grouped>(call);
  const int64_t cost = g.Of() * g.Depth() * g.columns / 16;
  ParallelFor(call, g.s.n * g.s.groups * g.strips, cost, [&](int64_t begin, int64_t end) {
    const auto bytes = static_cast<size_t>(g.Work()) * sizeof(float);
    const Bytes work = Allocate(bytes);
    std::memset(work.get(), 0, bytes);  // cells after the planes are multiplied, too
    for (int64_t u = begin; u < end; u++) RunStrip(call, g, u, reinterpret_cast<float*>(work.get()));
  });
  return Done(call);
}

// With AVX2, AMD EPYC 7003, one thread: groups of 4 channels take 0.24 to 0.7 of the time of oneDNN and its
// copies, groups of 8 take 1.1.
bool IsWorthwhile(const Conv& s) {
  constexpr int64_t kFewest = 2, kMost = 7, kFewResults = 16;
  return SimdLevel() == 1 && s.PerGroupOut() >= kFewest && s.PerGroupOut() <= kMost &&
         s.PerGroupIn() <= kMost && s.w.Cells(s.w.out) >= kFewResults;
}

bool Serves(const Conv& s, const BodyValue& w) {
  return s.groups > 1 && s.w.rank == 2 && s.w.stride[0] == 1 && s.w.stride[1] == 1 && IsWorthwhile(s) &&
         w.data != nullptr && AllFinite(static_cast<const float*>(w.data), w.Count());
}

}  // namespace

bool EmitGroupedConv(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s) {
  const BodyValue& w = b.Value(node.in[1]);
  if (b.channels_last || !r.post.empty() || !IsAtBorders(b, node, r) || !Serves(s, w)) return false;
  Bytes own;
  Grouped g = {s};
  const auto* weights = static_cast<const float*>(Scaled(w, r.scale, &own, {g.Depth(), s.o}));
  g.weights.assign(weights, weights + w.Count());
  for (const float each : r.shift) g.start.insert(g.start.end(), static_cast<size_t>(kPanel), each);
  g.block = g.Of() % 6 == 1 || g.Of() % 6 == 2 ? 4 : g.Of();  // a block of one or two rows is slow
  g.pitch = s.w.out[1] - 1 + s.w.Reach(1);
  g.strip = std::clamp<int64_t>(kStrip / g.pitch, 1, s.w.out[0]);
  g.strips = (s.w.out[0] + g.strip - 1) / g.strip;
  g.columns = (g.strip * g.pitch + kPanel - 1) / kPanel * kPanel;
  g.plane = g.columns + s.w.Reach(0) * g.pitch + s.w.Reach(1);
  auto made = std::make_unique<OwnLaunch>();
  Keep(&made->launch, std::move(g), Guard<RunGrouped>);
  b.EmitOwn(std::move(made), {node.in[0]}, {r.out},
            {b.BufferIn(node.in[0], b.PlainOf(node.in[0])), b.ResultBuffer(r.out, b.PlainOf(r.out))});
  return true;
}

}  // namespace keel_cpu
