// blocks.cc: matmul_blocks: the weights stay packed, and are unpacked as they are multiplied. For many rows,
// unless they are rounded, the op's body is faster, whose weights are unpacked once, while planning, and take
// up to 16 times the memory.
#include "plugins/cpu/matmul/blocks.h"

#include <algorithm>

#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kGroup = 32;  // rows of x that are multiplied by a tile of weights before the next one

struct BlockMatmul {
  const BlockKernel* kernel = nullptr;
  int64_t m = 0, n = 0, k = 0, count = 0, bytes = 0;
  bool has_zero = false;

  int64_t RowBytes() const { return kernel->row_bytes(count, bytes); }
  BlockRows Weights(const keel_call* call) const {
    return {In<uint8_t>(call, 1), In<float>(call, 2), has_zero ? In<float>(call, 3) : nullptr, count, bytes};
  }
};

void Spread(const keel_call* call, const BlockMatmul& w, char* x) {
  const BlockRows weights = w.Weights(call);
  const int64_t row = w.RowBytes();
  ParallelFor(call, w.m, w.k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      w.kernel->spread(In<float>(call, 0) + i * w.k, w.k, weights, x + i * row);
  });
}

// A group of rows of x by a tile of weights.
void Multiply(const keel_call* call, const BlockMatmul& w, const char* x, int64_t group, int64_t tile) {
  const int64_t row = w.RowBytes(), last = std::min(w.m, (group + 1) * kGroup);
  const int64_t j = tile * w.kernel->columns, columns = std::min(w.kernel->columns, w.n - j);
  const BlockRows weights = w.Weights(call).From(j);
  for (int64_t i = group * kGroup; i < last; i += w.kernel->rows)
    w.kernel->multiply(x + i * row, row, std::min(w.kernel->rows, last - i), weights, columns,
                       Out<float>(call, 0) + i * w.n + j, w.n);
}

keel_rc RunBlocks(const keel_call* call) {
  const BlockMatmul& w = State<BlockMatmul>(call);
  if (call->count == 0) return KEEL_OK;
  char* x = static_cast<char*>(call->scratch);
  Spread(call, w, x);
  const int64_t tiles = (w.n + w.kernel->columns - 1) / w.kernel->columns;
  ParallelFor(call, (w.m + kGroup - 1) / kGroup * tiles,
              std::min(w.m, kGroup) * w.k * w.kernel->columns / 8 + 4, [&](int64_t begin, int64_t end) {
                for (int64_t u = begin; u < end; u++) Multiply(call, w, x, u / tiles, u % tiles);
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

keel_rc PrepareBlocks(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), packed = node.In(1);
  BlockMatmul w;
  w.kernel = &KernelOf(node);
  w.m = Product(x.shape, x.ndim - 1);
  w.k = x.shape[x.ndim - 1];
  w.n = packed.shape[0], w.count = packed.shape[1], w.bytes = packed.shape[2];
  w.has_zero = node.Has(3);
  return Keep(launch, w, RunBlocks, static_cast<uint64_t>(w.m * w.RowBytes()));
}

bool IsFew(const Node& node) {
  const keel_tensor x = node.In(0);
  return std::all_of(x.shape, x.shape + x.ndim, [](int64_t d) { return d >= 0; }) &&
         Product(x.shape, x.ndim - 1) <= KernelOf(node).most_rows;
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
