// blocks.cc: matmul_blocks of a few rows: the weights stay packed, and are unpacked as they are multiplied.
// For more rows the op's body is faster, whose weights are unpacked once, while planning, and take up to 16
// times the memory.
#include "plugins/cpu/matmul/blocks.h"

#include <algorithm>

#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kFewRows = 16;  // at 4096 x 4096 and one thread, both ways take about the same time

struct BlockMatmul {
  const BlockKernel* kernel = nullptr;
  int64_t m = 0, n = 0, k = 0, count = 0, bytes = 0;
  bool has_zero = false;

  int64_t RowBytes() const { return kernel->row_bytes(count, bytes); }
  BlockRows Weights(const keel_call* call) const {
    return {In<uint8_t>(call, 1), In<float>(call, 2), has_zero ? In<float>(call, 3) : nullptr, count, bytes};
  }
};

keel_rc RunBlocks(const keel_call* call) {
  const BlockMatmul& w = State<BlockMatmul>(call);
  if (call->count == 0) return KEEL_OK;
  const BlockRows weights = w.Weights(call);
  const int64_t row = w.RowBytes();
  char* x = static_cast<char*>(call->scratch);
  for (int64_t i = 0; i < w.m; i++) w.kernel->spread(In<float>(call, 0) + i * w.k, w.k, weights, x + i * row);
  ParallelFor(call, w.n, w.m * w.k / 8 + 4, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j += w.kernel->columns)
      for (int64_t i = 0; i < w.m; i += w.kernel->rows)
        w.kernel->multiply(x + i * row, row, std::min(w.kernel->rows, w.m - i), weights.From(j),
                           std::min(w.kernel->columns, end - j), Out<float>(call, 0) + i * w.n + j, w.n);
  });
  return Done(call);
}

keel_rc PrepareBlocks(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), packed = node.In(1);
  BlockMatmul w;
  w.kernel = &(node.Flag("rounded") ? RoundedLoops : BlockLoops)(node.Int("bits"));
  w.m = Product(x.shape, x.ndim - 1);
  w.k = x.shape[x.ndim - 1];
  w.n = packed.shape[0], w.count = packed.shape[1], w.bytes = packed.shape[2];
  w.has_zero = node.Has(3);
  return Keep(launch, w, RunBlocks, static_cast<uint64_t>(w.m * w.RowBytes()));
}

bool IsFew(const Node& node) {
  const keel_tensor x = node.In(0);
  return std::all_of(x.shape, x.shape + x.ndim, [](int64_t d) { return d >= 0; }) &&
         Product(x.shape, x.ndim - 1) <= kFewRows;
}
bool Matches(const Node& node) { return !node.Flag("rounded") && IsFew(node); }
bool MatchesRounded(const Node& node) {
  const int64_t block = node.In(1).shape[2];
  return node.Flag("rounded") && IsFew(node) && block >= kLeastBlock && (block & (block - 1)) == 0;
}

constexpr keel_impl kImpls[] = {
    Impl("matmul_blocks", "weights unpacked in loops", Prepare<PrepareBlocks>, 0, "T=f32", 0, Match<Matches>),
    Impl("matmul_blocks", "weights unpacked in loops, x rounded", Prepare<PrepareBlocks>, 0, "T=f32", 0,
         Match<MatchesRounded>)};

}  // namespace

Impls BlockImpls() { return kImpls; }

}  // namespace keel_cpu
