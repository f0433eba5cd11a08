// blocks.cc: matmul_blocks: the weights keep their few bits, and are unpacked as they are multiplied. Some
// kernels read them as panels, which are a copy; of constant weights it is made once, while planning. For
// many rows, unless they are rounded, the op's body is faster, whose weights are unpacked once, while
// planning, and take up to 16 times the memory.
#include "plugins/cpu/matmul/blocks.h"

#include <algorithm>

#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kGroup = 32;  // rows of x that are multiplied by a tile of weights before the next one

struct BlockMatmul {
  const BlockKernel* kernel = nullptr;
  int64_t m = 0, n = 0, k = 0;
  BlockRow row = {};
  Bytes panels;  // of constant weights

  bool HasPanels() const { return kernel->pack != nullptr; }
  int64_t RowBytes() const { return kernel->row_bytes(row); }
  int64_t Tiles() const { return (n + kernel->columns - 1) / kernel->columns; }
  int64_t Columns(int64_t tile) const { return std::min(kernel->columns, n - tile * kernel->columns); }
  int64_t PanelBytes() const { return kernel->panel_bytes(row); }
  void Pack(const BlockRows& w, int64_t tile, char* panels) const {
    kernel->pack(w.From(tile * kernel->columns), Columns(tile), panels + tile * PanelBytes());
  }
  // Of the operands, or of the panels unless they are null.
  BlockRows Tile(const BlockRows& w, const char* panels, int64_t tile) const {
    BlockRows rows = w.From(tile * kernel->columns);
    if (panels != nullptr) rows.w = reinterpret_cast<const uint8_t*>(panels + tile * PanelBytes());
    return rows;
  }
};

void Spread(const keel_call* call, const BlockMatmul& w, char* x) {
  const int64_t row = w.RowBytes();
  ParallelFor(call, w.m, w.k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      w.kernel->spread(In<float>(call, 0) + i * w.k, w.k, w.row, x + i * row);
  });
}

// A group of rows of x by a tile of weights.
void Multiply(const keel_call* call, const BlockMatmul& w, const char* x, int64_t group, int64_t tile,
              const BlockRows& weights) {
  const int64_t row = w.RowBytes(), last = std::min(w.m, (group + 1) * kGroup);
  const int64_t j = tile * w.kernel->columns, columns = w.Columns(tile);
  for (int64_t i = group * kGroup; i < last; i += w.kernel->rows)
    w.kernel->multiply(x + i * row, row, std::min(w.kernel->rows, last - i), weights, columns,
                       Out<float>(call, 0) + i * w.n + j, w.n);
}

// Behind the rows of x in the workspace.
const char* PackAll(const keel_call* call, const BlockMatmul& w, const BlockRows& given) {
  char* to = static_cast<char*>(call->scratch) + w.m * w.RowBytes();
  ParallelFor(call, w.Tiles(), w.PanelBytes() / 4, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; tile++) w.Pack(given, tile, to);
  });
  return to;
}

keel_rc RunBlocks(const keel_call* call) {
  const BlockMatmul& w = State<BlockMatmul>(call);
  if (call->count == 0) return KEEL_OK;
  char* x = static_cast<char*>(call->scratch);
  Spread(call, w, x);
  const BlockRows given = {w.row, In<uint8_t>(call, 1), In<float>(call, 2),
                           w.row.has_zero ? In<float>(call, 3) : nullptr};
  const char* panels = w.panels.get();
  if (w.HasPanels() && panels == nullptr) panels = PackAll(call, w, given);
  const int64_t tiles = w.Tiles(), cost = std::min(w.m, kGroup) * w.k * w.kernel->columns / 8 + 4;
  ParallelFor(call, (w.m + kGroup - 1) / kGroup * tiles, cost, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++)
      Multiply(call, w, x, u / tiles, u % tiles, w.Tile(given, panels, u % tiles));
  });
  return Done(call);
}

bool FillsLanes(const Node& node) {
  const int64_t block = node.In(1).shape[2];
  return block >= kLeastBlock && (block & (block - 1)) == 0;
}
const BlockKernel& KernelOf(const Node& node) {
  const int64_t bits = node.Int("bits");
  if (node.Flag("rounded")) return RoundedLoops(bits);
  const BlockKernel* lanes = FillsLanes(node) ? LaneLoops(bits) : nullptr;
  return lanes != nullptr ? *lanes : BlockLoops(bits);
}

const float* Numbers(const Node& node, int operand) {
  const keel_tensor t = node.In(operand);
  return static_cast<const float*>(keel_ptr(&t));
}
bool IsConstant(const Node& node) {
  return node.In(1).data != nullptr && node.In(2).data != nullptr &&
         (!node.Has(3) || node.In(3).data != nullptr);
}
void PackConstant(const Node& node, BlockMatmul* w) {
  const keel_tensor packed = node.In(1);
  const BlockRows given = {w->row, static_cast<const uint8_t*>(keel_ptr(&packed)), Numbers(node, 2),
                           w->row.has_zero ? Numbers(node, 3) : nullptr};
  w->panels = AllocateConstant(static_cast<size_t>(w->Tiles() * w->PanelBytes()));
  for (int64_t tile = 0; tile < w->Tiles(); tile++) w->Pack(given, tile, w->panels.get());
}

keel_rc PrepareBlocks(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), packed = node.In(1);
  BlockMatmul w;
  w.kernel = &KernelOf(node);
  w.m = Product(x.shape, x.ndim - 1);
  w.k = x.shape[x.ndim - 1];
  w.n = packed.shape[0];
  w.row = {packed.shape[1], packed.shape[2], node.Has(3)};
  int64_t scratch = w.m * w.RowBytes();
  if (w.HasPanels() && IsConstant(node))
    PackConstant(node, &w);
  else if (w.HasPanels())
    scratch += w.Tiles() * w.PanelBytes();
  return Keep(launch, std::move(w), RunBlocks, static_cast<uint64_t>(scratch));
}

bool IsFew(const Node& node) {
  const keel_tensor x = node.In(0);
  return HasDims(x) && Product(x.shape, x.ndim - 1) <= KernelOf(node).most_rows;
}
bool Matches(const Node& node) { return !node.Flag("rounded") && IsFew(node); }
bool MatchesRounded(const Node& node) { return node.Flag("rounded") && IsFew(node) && FillsLanes(node); }

constexpr keel_impl kImpls[] = {
    Impl("matmul_blocks", "weights unpacked in loops", Prepare<PrepareBlocks>, 0, "T=f32", 0, Match<Matches>),
    Impl("matmul_blocks", "weights unpacked in loops, x rounded", Prepare<PrepareBlocks>, 0, "T=f32", 0,
         Match<MatchesRounded>)};

}  // namespace

Impls BlockImpls() { return kImpls; }

}  // namespace keel_cpu
