// conv.cc: convolution and its gradients.
#include "tiles.h"
#include "window.h"

namespace vulkan {
namespace {

enum Kind : uint32_t { kForward, kImage, kWeights };  // shaders/conv.comp

// x [n, channels, image], w [outputs, channels of a group, window], y [n, outputs, places].
void Convolve(Op& op, Kind kind, const keel_tensor& x, const keel_tensor& w, const keel_tensor& y) {
  const Window window(op, x, w.shape + 2, y);
  const int64_t groups = op.Int("groups");
  if (op.rc) return;
  auto dim = [](int64_t d) { return static_cast<uint32_t>(d); };
  struct {
    uint32_t batches, rows, columns, inner, depth, images, groups, ins, outs, pixels, windows, taps;
    Window window;
  } n = {0,
         0,
         0,
         0,
         0,
         dim(x.shape[0]),
         dim(groups),
         dim(w.shape[1]),
         dim(w.shape[0] / groups),
         window.pixels(),
         window.windows(),
         window.taps(),
         window};
  n.batches = kind == kWeights ? n.groups : n.images * n.groups;
  n.rows = kind == kImage ? n.ins : n.outs;
  n.columns = kind == kForward ? n.windows : kind == kImage ? n.pixels : n.ins * n.taps;
  n.inner = kind == kForward ? n.ins * n.taps : kind == kImage ? n.outs * n.taps : n.images * n.windows;
  const uint32_t direct = n.rows < 4 || n.columns < 4;
  n.depth = direct ? kThreadDepth : kTileDepth;
  op.work.Set(n);
  const Tiles tiles = direct ? Tiles{1, 1} : TilesFor(x, n.rows, n.columns);
  if (direct)
    op.work.Threads(uint64_t{n.batches} * n.rows * n.columns, 256);
  else
    TileGrid(op, tiles, n.rows, n.columns, n.batches);
  op.work.pipeline = op.Numbers("conv", x,
                                {tiles.rows, tiles.columns, kind, direct, window.IsPoints(), window.rank,
                                 window.IsSmall(std::max(n.inner, n.columns))});
  StepInner(op, n.inner, n.depth);
}
void Conv(Op& op) { Convolve(op, kForward, op.In(0), op.In(1), op.Out(0)); }
void ConvGradX(Op& op) { Convolve(op, kImage, op.Out(0), op.In(1), op.In(0)); }
void ConvGradW(Op& op) { Convolve(op, kWeights, op.In(1), op.Out(0), op.In(0)); }

}  // namespace

Impls ConvImpls() {
  constexpr const char* kName = "tiles, or a thread for each result";
  return {NumbersRow<Conv>("conv", kFloatTypes, kName),
          NumbersRow<ConvGradX>("conv_grad_x", kFloatTypes, kName),
          NumbersRow<ConvGradW>("conv_grad_w", kFloatTypes, kName)};
}

}  // namespace vulkan
