// conv.cc: convolution and its gradients: as products of matrices by tiles (shaders/conv.comp), or on
// processors in registers, over a padded copy of the image (shaders/phases.comp).
#include "phases.h"
#include "tiles.h"

namespace vulkan {
namespace {

enum Kind : uint32_t { kForward, kImage, kWeights };   // shaders/conv.comp
enum Mode : uint32_t { kTiles, kThreads, kMendNans };  // shaders/conv.comp

// As shaders/conv.comp reads them.
struct ConvNumbers {
  uint32_t batches, rows, columns, inner, depth;
  ConvSizes sizes;
};

ConvNumbers Sizes(Op& op, Kind kind, const keel_tensor& x, const keel_tensor& w, const keel_tensor& y) {
  const ConvSizes s(op, x, w, y);
  ConvNumbers n{};
  n.sizes = s;
  n.batches = kind == kWeights ? s.groups : s.images * s.groups;
  n.rows = kind == kImage ? s.ins : s.outs;
  n.columns = kind == kForward ? s.windows : kind == kImage ? s.pixels : s.ins * s.taps;
  n.inner = kind == kForward ? s.ins * s.taps : kind == kImage ? s.outs * s.taps : s.images * s.windows;
  return n;
}

// One of the modes of conv.comp, for all steps of the inner dim.
void Launch(Op& op, Kind kind, Mode mode, ConvNumbers n) {
  const keel_tensor t = op.In(0);
  n.depth = mode == kTiles ? kTileDepth : kThreadDepth;
  const Tiles tiles = mode == kTiles ? TilesFor(op, t, n.rows, n.columns) : Tiles{};
  const Groups groups = mode == kTiles ? TileGrid(op, tiles, n.rows, n.columns, n.batches)
                                       : ThreadGroups(uint64_t{n.batches} * n.rows * n.columns, 256);
  const VkPipeline pipeline = TilePipeline(op, "conv", t, tiles,
                                           {kind, mode, n.sizes.window.IsPoints(), n.sizes.window.rank,
                                            IsSmall(n.sizes.window, std::max(n.inner, n.columns))});
  Steps(op, pipeline, groups, n.inner, n.depth, op.work.Add(n));
}

// The product that a convolution is, or its gradient for x, if window cells are image cells; else with an
// image.
RegisterProduct ProductOf(Kind kind, const ConvNumbers& n) {
  RegisterProduct made{.left = 1};
  ProductNumbers& m = made.n;
  const uint32_t weights = n.sizes.ins * n.sizes.taps;  // of an output
  m.rows = n.rows, m.columns = m.b_inner = n.columns, m.inner = n.inner, m.depth = kTileDepth;
  m.a_row = kind == kForward ? weights : 1, m.a_inner = kind == kForward ? 1 : weights, m.b_column = 1;
  m.batches = n.batches, m.rank = 2, m.sizes[0] = n.sizes.images, m.sizes[1] = n.sizes.groups;
  m.of_a[1] = n.sizes.groups > 1 ? n.sizes.outs * weights : 0;
  m.of_b[0] = n.sizes.groups * n.inner * n.columns, m.of_b[1] = n.inner * n.columns;
  made.image.results = n.columns;
  return made;
}

// Whether a window reaches over the image's border.
bool IsPadded(const Window& w) {
  for (uint32_t d = 0; d < w.rank; d++) {
    const int64_t last =
        int64_t{w.places[d] - 1} * w.stride[d] + int64_t{w.window[d] - 1} * w.dil[d] - w.lo[d];
    if (w.lo[d] > 0 || last >= w.image[d]) return true;
  }
  return false;
}

uint64_t RoundUp(uint64_t n, uint32_t to) { return CeilDiv(n, to) * to; }

// Copies the image to scratch, behind sums of steps. The product's columns are the copy's cells from the
// first place of a window to the last one. false: too large to count.
bool CopyImage(Op& op, const ConvNumbers& n, RegisterProduct& product) {
  const Window& w = n.sizes.window;
  const uint64_t bytes = op.In(0).dtype.bits / 8, copies = bytes == 4 ? 2 : 1;
  Phases copy(w, n.sizes.images * n.sizes.groups * n.sizes.ins, n.inner, copies == 2);
  const uint64_t elements = copies * copy.channels * copy.phases * copy.cells;
  // A thread finds a cell once and copies it in many channels.
  const uint32_t groups = std::min(copy.channels, 16 + copy.channels / kMostIterations * copy.phases);
  if (elements > INT32_MAX || groups > kMostGroups) return false;
  ImageNumbers& image = product.image;
  image.rank = w.rank;
  uint32_t pitch = 1;
  product.n.columns = 1;
  for (uint32_t d = w.rank; d-- > 0; pitch *= copy.copied.places[d]) {
    image.places[d] = w.places[d], image.pitch[d] = pitch;
    product.n.columns += (w.places[d] - 1) * pitch;
  }
  image.image = copy.to_image = RoundUp(op.work.scratch_bytes, 16);
  image.table = copy.to_table = RoundUp(image.image + (elements + kProductSlack) * bytes, 16);
  op.work.scratch_bytes = image.table + 4 * uint64_t{n.inner};
  const uint32_t of_group = n.sizes.ins * copy.phases * copy.cells;
  product.n.of_b[0] = n.sizes.groups * of_group, product.n.of_b[1] = of_group;
  product.pairs_b = copies == 2;
  product.from_image = 1;
  op.Then(op.Movement("phases", op.In(0), {static_cast<uint32_t>(copies), w.rank, copy.cells < 1 << 20}),
          {ThreadGroups(copy.cells).x, groups}, 0, op.work.Add(copy));
  return true;
}

// Whether it was taken: a convolution of images of two dims in which each channel is a group, with a window
// of few cells a row.
bool Depthwise(Op& op, const ConvNumbers& n) {
  constexpr uint32_t kColumns = 8, kMostCells = 32;
  const Window& w = n.sizes.window;
  if (op.rc || n.sizes.ins != 1 || n.sizes.outs != 1 || w.rank != 2 || !n.sizes.pixels || !n.sizes.taps)
    return false;
  const auto stride = static_cast<uint32_t>(w.stride[1]), dil = static_cast<uint32_t>(w.dil[1]);
  if ((kColumns - 1) * stride + (w.window[1] - 1) * dil >= kMostCells) return false;
  const uint32_t blocks = CeilDiv(w.places[1], kColumns);
  const struct {
    uint32_t count, channels, blocks;
    Window window;
  } numbers = {n.sizes.images * n.sizes.groups * w.places[0] * blocks, n.sizes.groups, blocks, w};
  op.work.Set(numbers);
  op.work.Threads(numbers.count);
  op.work.pipeline = op.Numbers("depthwise", op.In(0), {kColumns, w.window[1], stride, dil});
  return true;
}

// Whether it was taken: a convolution, or the gradient for x if it is a product of matrices.
bool InRegisters(Op& op, Kind kind, const ConvNumbers& n) {
  const bool points = n.sizes.window.IsPoints();
  if (!op.device->is_processor || kind == kWeights || (kind == kImage && !points)) return false;
  const keel_tensor y = op.Out(0);
  if (op.rc || !n.inner || !keel_count(&y)) return false;
  RegisterProduct product = ProductOf(kind, n);
  product.FindPairs(op.In(0));
  ReserveSums(op, n.inner, kTileDepth);
  if (!points && !CopyImage(op, n, product)) return false;
  return MultiplyInRegisters(op, product);
}

void Convolve(Op& op, Kind kind, const keel_tensor& x, const keel_tensor& w, const keel_tensor& y) {
  const ConvNumbers n = Sizes(op, kind, x, w, y);
  if (kind == kForward && Depthwise(op, n)) return;
  if (!InRegisters(op, kind, n)) {
    const Mode mode = n.rows < 4 || n.columns < 4 ? kThreads : kTiles;
    Launch(op, kind, mode, n);
    if (mode == kThreads) return;
  }
  if (!n.sizes.window.IsPoints() && (kind == kImage || IsPadded(n.sizes.window)))
    Launch(op, kind, kMendNans, n);
}
void Conv(Op& op) { Convolve(op, kForward, op.In(0), op.In(1), op.Out(0)); }
void ConvGradX(Op& op) { Convolve(op, kImage, op.Out(0), op.In(1), op.In(0)); }
void ConvGradW(Op& op) { Convolve(op, kWeights, op.In(1), op.Out(0), op.In(0)); }

}  // namespace

Impls ConvImpls() {
  constexpr const char* kName = "products of matrices";
  return {NumbersRow<Conv>("conv", kFloatTypes, kName),
          NumbersRow<ConvGradX>("conv_grad_x", kFloatTypes, kName),
          NumbersRow<ConvGradW>("conv_grad_w", kFloatTypes, kName)};
}

}  // namespace vulkan
