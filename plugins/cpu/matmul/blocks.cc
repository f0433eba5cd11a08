// blocks.cc: matmul_blocks: products with weights that are quantised in blocks and stay packed. A few rows of
// x are multiplied by the weights as they are unpacked; for more rows the weights of a panel of columns are
// unpacked once, and the own loops multiply.
#include "plugins/cpu/matmul/blocks.h"

#include <algorithm>

#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kFewRows = 16;  // at 4096 x 4096 and one thread, both ways take the same time
constexpr int64_t kBlock = 96;    // rows that are multiplied by a panel before the next one

struct BlockMatmul {
  const BlockKernel* kernel = nullptr;
  const MatmulOp* loops = nullptr;  // of f32
  int64_t m = 0, n = 0, k = 0, count = 0, bytes = 0;
  bool has_zero = false;

  int64_t RowBytes() const { return count * bytes; }
  int64_t Spread() const { return RowBytes() * 8 / kernel->bits; }  // elements of a row of x
  bool Few() const { return m <= kFewRows; }
  BlockRow Row(const keel_call* call, int64_t column) const {
    return {In<uint8_t>(call, 1) + column * RowBytes(), In<float>(call, 2) + column * count,
            has_zero ? In<float>(call, 3) + column * count : nullptr, count, bytes};
  }
};

keel_rc RunFew(const keel_call* call, const BlockMatmul& w) {
  float* x = static_cast<float*>(call->scratch);
  float* sums = x + w.m * w.Spread();
  for (int64_t i = 0; i < w.m; i++)
    w.kernel->spread(In<float>(call, 0) + i * w.k, w.k, w.count, w.bytes, x + i * w.Spread(),
                     sums + i * w.count);
  ParallelFor(call, w.n, w.m * w.k / 8 + 4, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j++) {
      const BlockRow row = w.Row(call, j);
      for (int64_t i = 0; i < w.m; i += w.kernel->rows)
        w.kernel->multiply(x + i * w.Spread(), sums + i * w.count, std::min(w.kernel->rows, w.m - i), row,
                           Out<float>(call, 0) + i * w.n + j, w.n);
    }
  });
  return Done(call);
}

keel_rc RunMany(const keel_call* call, const BlockMatmul& w) {
  const int64_t panel = w.loops->panel, panels = (w.n + panel - 1) / panel;
  ParallelFor(call, panels, w.m * w.k * panel / 16, [&](int64_t begin, int64_t end) {
    const Bytes memory = Allocate(static_cast<size_t>(w.k * panel) * sizeof(float));
    float* to = reinterpret_cast<float*>(memory.get());
    for (int64_t p = begin; p < end && !Cancelled(call); p++) {
      const int64_t columns = std::min(panel, w.n - p * panel);
      if (columns < panel) std::fill_n(to, w.k * panel, 0.0f);
      for (int64_t j = 0; j < columns; j++) w.kernel->unpack(w.Row(call, p * panel + j), w.k, to + j, panel);
      for (int64_t i = 0; i < w.m; i += kBlock)
        w.loops->multiply({In<float>(call, 0) + i * w.k, w.k, 1}, to, panel, std::min(kBlock, w.m - i), w.n,
                          w.k, p, Out<float>(call, 0) + i * w.n);
    }
  });
  return Done(call);
}

keel_rc RunBlocks(const keel_call* call) {
  const BlockMatmul& w = State<BlockMatmul>(call);
  if (call->count == 0) return KEEL_OK;
  return w.Few() ? RunFew(call, w) : RunMany(call, w);
}

keel_rc PrepareBlocks(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), packed = node.In(1);
  BlockMatmul w;
  w.kernel = &BlockLoops(node.Int("bits"));
  w.loops = std::find_if(MatmulLoops().dtypes, MatmulLoops().dtypes + MatmulLoops().n,
                         [](const MatmulOp& op) { return op.dtype == KEEL_F32; });
  w.m = Product(x.shape, x.ndim - 1);
  w.k = x.shape[x.ndim - 1];
  w.n = packed.shape[0], w.count = packed.shape[1], w.bytes = packed.shape[2];
  keel_tensor zero;
  w.has_zero = node.host->node_in(node.node, 3, &zero) == KEEL_OK;
  const uint64_t scratch = w.Few() ? static_cast<uint64_t>(w.m * (w.Spread() + w.count)) * sizeof(float) : 0;
  return Keep(launch, w, RunBlocks, scratch);
}

constexpr keel_impl kImpls[] = {
    Impl("matmul_blocks", "weights unpacked in loops", Prepare<PrepareBlocks>, 0, "T=f32")};

}  // namespace

Impls BlockImpls() { return kImpls; }

}  // namespace keel_cpu
