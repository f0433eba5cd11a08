// matmul.cc: products of matrices, with broadcast batches; linear.
#include "product.h"
#include "tiles.h"

namespace vulkan {
namespace {

enum Mode : uint32_t { kTiles, kColumns, kDots };  // shaders/matmul.comp

// Matrices that are vectors, or nearly: a thread a column if these are adjacent and many, otherwise a group a
// result.
Mode ModeFor(const ProductNumbers& n) {
  if (n.rows > 4 && n.columns > 4) return kTiles;
  if (n.inner < 32 || (n.columns >= 256 && n.b_column == 1) ||
      uint64_t{n.rows} * n.columns * n.batches > 65536)
    return kColumns;
  return kDots;
}

void Finish(Op& op, ProductNumbers& n, uint32_t bias) {
  const keel_tensor c = op.Out(0);
  const Mode mode = ModeFor(n);
  n.depth = mode == kColumns ? kThreadDepth : mode == kDots ? 256 * kThreadDepth : kTileDepth;
  if (op.device->is_processor && mode != kDots) {
    RegisterProduct product{.n = n, .with_bias = bias};
    product.image.results = n.columns;
    product.FindPairs(c);
    if (MultiplyInRegisters(op, product)) return;
  }
  const Tiles tiles = mode == kTiles ? TilesFor(op, c, n.rows, n.columns) : Tiles{};
  const Groups groups = mode == kTiles
                            ? TileGrid(op, tiles, n.rows, n.columns, n.batches)
                            : ThreadGroups(static_cast<uint64_t>(keel_count(&c)), mode == kColumns ? 256 : 1);
  Steps(op, TilePipeline(op, "matmul", c, tiles, {mode, bias}), groups, n.inner, n.depth, op.work.Add(n));
}

void Matmul(Op& op) {
  const keel_tensor a = op.In(0), b = op.In(1), c = op.Out(0);
  const bool ta = op.Int("ta"), tb = op.Int("tb");
  ProductNumbers n{};
  n.rows = dim_from_end<uint32_t>(c, 2), n.columns = dim_from_end<uint32_t>(c, 1),
  n.inner = dim_from_end<uint32_t>(a, ta ? 2 : 1);
  n.a_row = ta ? 1 : dim_from_end<uint32_t>(a, 1), n.a_inner = ta ? dim_from_end<uint32_t>(a, 1) : 1;
  n.b_inner = tb ? 1 : dim_from_end<uint32_t>(b, 1), n.b_column = tb ? dim_from_end<uint32_t>(b, 1) : 1;
  n.rank = static_cast<uint32_t>(c.ndim - 2);
  n.batches = Product32(c.shape, c.shape + n.rank);
  for (uint32_t i = 0; i < n.rank; i++) n.sizes[i] = static_cast<uint32_t>(c.shape[i]);
  broadcast_strides(a, c, n.of_a);  // of the last two dims they are unused
  broadcast_strides(b, c, n.of_b);
  Finish(op, n, 0);
}

// The batches together are one matrix.
void Linear(Op& op) {
  const keel_tensor x = op.In(0), w = op.In(1);
  ProductNumbers n{};
  n.rows = Product32(x.shape, x.shape + x.ndim - 1), n.columns = static_cast<uint32_t>(w.shape[1]);
  n.inner = static_cast<uint32_t>(w.shape[0]);
  n.a_row = n.inner, n.a_inner = 1, n.b_inner = n.columns, n.b_column = 1, n.batches = 1;
  Finish(op, n, 1);
}

}  // namespace

Impls MatmulImpls() {
  constexpr const char* kName = "tiles, or dot products when small";
  return {NumbersRow<Matmul>("matmul", kNumTypes, kName), NumbersRow<Linear>("linear", kFloatTypes, kName)};
}

}  // namespace vulkan
