// pointwise.cc: see pointwise.h.
#include "plugins/cpu/conv/pointwise.h"

#include <algorithm>

#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/onednn/onednn.h"
#include "plugins/cpu/shape/transpose.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

constexpr int64_t kSmallWork = 1 << 20;  // below, a region costs more than it saves
constexpr int64_t kFewestPixels = 32;
// By panels of images, rows of weights a multiple of 4 KiB apart evict one another.
constexpr int64_t kMostImageChannels = 512;
// By panels of weights, each channel of an image is read at a distance of all its pixels.
constexpr int64_t kMostPixels = 256, kMostChannels = 8192;
// With AVX2 a block reads only 24 bytes of each channel's line and takes 1.4 times as long as from an image
// with channels last, so images are copied first. With AVX-512, whose blocks read 48 bytes, that gains
// nothing.
constexpr int64_t kChannelsOfCopy = 64;  // of a thread's share of the copy
constexpr int64_t kGap = 16;             // after a pixel's channels: they would evict the next one's
bool CopiesImages() { return SimdLevel() == 1; }
// oneDNN is as fast or faster with AVX-512 for fewer channels and, by panels of images, for more results than
// channels.
constexpr int64_t kFewChannels = 128;
constexpr int64_t kFull = 90;  // percent of an image's panels that pixels fill
constexpr int64_t kFloat = sizeof(float);

const MatmulOp& Loops() {
  static const MatmulOp& loops = *MatmulLoops(KEEL_F32);
  return loops;
}

struct Pointwise : PointwiseShape {
  // The first values of sums: for each result a panel's columns, or by panels of weights one number; or none.
  std::vector<float> start = {};

  bool channels_last = false;  // the images are copied so, to the scratch memory
  int64_t Row() const { return channels + kGap; }

  Start StartAt(int64_t i, int64_t row) const { return {start.empty() ? nullptr : start.data() + i, row}; }
  const float* Image(const keel_call* call, int64_t image) const {
    return In<float>(call, 0) + image * channels * pixels;
  }
  float* Copy(const keel_call* call, int64_t image) const {
    return static_cast<float*>(call->scratch) + image * pixels * Row();
  }
  Matrix Pixels(const keel_call* call, int64_t image) const {
    return channels_last ? Matrix{Copy(call, image), Row(), 1} : Matrix{Image(call, image), 1, pixels};
  }
  float* Result(const keel_call* call, int64_t image) const {
    return Out<float>(call, 0) + image * results * pixels;
  }
};

Bytes Floats(int64_t n) { return Allocate(static_cast<size_t>(n * kFloat)); }

// The cells of the two panels after the pair of unit u, to be fetched while that is computed: half the
// channels by each panel. Longer lines take less time to arrive: 0.95 of the whole for 256x56x56 to 64.
Next CellsAfter(const Pointwise& s, const keel_call* call, int64_t u, int64_t panels, int64_t end) {
  const int64_t group = s.channels < Loops().long_sum ? 1 : 2, panel = Loops().panel;
  const int64_t p = u % panels, first = p / group * group, last = std::min(first + group, panels);
  const int64_t after = u - p + last, begin = after % panels * panel, part = s.channels / group;
  if (after >= end) return {};
  const int64_t from = (p - first) * part, rows = p + 1 == last ? s.channels - from : part;
  return {s.Image(call, after / panels) + from * s.pixels + begin,
          std::min(group * panel, s.pixels - begin) * kFloat, rows, s.pixels * kFloat};
}

// A full panel is packed as its first rows are computed.
void RunPanel(const keel_call* call, const Pointwise& s, int64_t image, int64_t p, Next next, float* packed) {
  const MatmulOp& op = Loops();
  const float* cells = s.Image(call, image) + p * op.panel;
  Panel panel = {packed, op.panel, next, s.StartAt(0, op.panel)};
  if ((p + 1) * op.panel <= s.pixels)
    panel.data = cells, panel.step = s.pixels, panel.copy = packed;
  else
    op.pack({s.Image(call, image), s.pixels, 1}, s.channels, s.pixels, p, packed);
  op.multiply({In<float>(call, 1), s.channels, 1}, panel, s.results, s.pixels, s.channels, p, false,
              s.Result(call, image));
}

keel_rc RunImagePanels(const keel_call* call) {
  const Pointwise& s = State<Pointwise>(call);
  const int64_t panel = Loops().panel, panels = Loops().Panels(s.pixels);
  ParallelFor(call, s.images * panels, s.results * s.channels * panel / 16, [&](int64_t begin, int64_t end) {
    const Bytes packed = Floats(s.channels * panel);
    for (int64_t u = begin; u < end; u++) {
      const Next next = CellsAfter(s, call, u, panels, end);
      RunPanel(call, s, u / panels, u % panels, next, reinterpret_cast<float*>(packed.get()));
    }
  });
  return Done(call);
}

void CopyImages(const keel_call* call, const Pointwise& s) {
  const int64_t parts = (s.channels + kChannelsOfCopy - 1) / kChannelsOfCopy;
  ParallelFor(call, s.images * parts, kChannelsOfCopy * s.pixels / 4, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) {
      const int64_t image = u / parts, c = u % parts * kChannelsOfCopy;
      Transpose(s.Image(call, image) + c * s.pixels, s.pixels, std::min(kChannelsOfCopy, s.channels - c),
                s.pixels, s.Copy(call, image) + c, s.Row());
    }
  });
}

// The pixels of an image by a panel of weights: a tile, which is transposed into the result.
void RunTile(const keel_call* call, const Pointwise& s, int64_t image, int64_t p, float* tile) {
  const MatmulOp& op = Loops();
  const int64_t rows = s.pixels, numbers = s.channels * op.panel;
  const float* weights = In<float>(call, 1) + p * numbers;
  const Next next = (p + 1) * op.panel < s.results ? Next{weights + numbers, numbers * kFloat} : Next{};
  op.multiply(s.Pixels(call, image), {weights, op.panel, next, s.StartAt(p * op.panel, 0)}, rows, op.panel,
              s.channels, 0, false, tile);
  Transpose(tile, op.panel, rows, op.panel, s.Result(call, image) + p * op.panel * s.pixels, s.pixels);
}

keel_rc RunWeightPanels(const keel_call* call) {
  const Pointwise& s = State<Pointwise>(call);
  const int64_t panel = Loops().panel, panels = s.results / panel, cost = s.pixels * s.channels * panel / 16;
  if (s.channels_last) CopyImages(call, s);
  ParallelFor(call, s.images * panels, cost, [&](int64_t begin, int64_t end) {
    const Bytes tile = Floats(s.pixels * panel);
    for (int64_t u = begin; u < end; u++)
      RunTile(call, s, u / panels, u % panels, reinterpret_cast<float*>(tile.get()));
  });
  return Done(call);
}

bool IsFasterByOneDnn(const PointwiseShape& s, bool images) {
  const bool expands = images && s.results > s.channels;
  return SimdLevel() == 0 || (SimdLevel() == 2 && (s.channels < kFewChannels || expands));
}

}  // namespace

int64_t WeightPanel() { return Loops().panel; }

PointwiseWay WayOf(const PointwiseShape& s, bool constant) {
  const bool images = Loops().Filled(s.pixels) >= kFull;
  if (s.Work() < kSmallWork || s.pixels < kFewestPixels || IsFasterByOneDnn(s, images))
    return PointwiseWay::kOther;
  const bool fits =
      images ? s.channels <= kMostImageChannels && s.results * s.channels * kFloat <= SecondLevelCache() / 2
             : constant && s.pixels <= kMostPixels && s.channels <= kMostChannels &&
                   s.results % WeightPanel() == 0;
  return !fits ? PointwiseWay::kOther : images ? PointwiseWay::kImagePanels : PointwiseWay::kWeightPanels;
}

void KeepPointwise(const PointwiseShape& s, PointwiseWay way, const std::vector<float>& shift,
                   keel_launch* launch) {
  const bool images = way == PointwiseWay::kImagePanels;
  Pointwise made = {s};
  for (const float each : shift)
    made.start.insert(made.start.end(), images ? static_cast<size_t>(WeightPanel()) : 1, each);
  made.channels_last = !images && CopiesImages();
  const auto scratch =
      static_cast<uint64_t>(made.channels_last ? s.images * s.pixels * made.Row() * kFloat : 0);
  Keep(launch, std::move(made), images ? Guard<RunImagePanels> : Guard<RunWeightPanels>, scratch);
}

}  // namespace keel_cpu
