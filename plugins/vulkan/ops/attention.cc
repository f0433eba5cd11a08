// attention.cc: attention in one launch of shaders/attention.comp. Few rows, wide results, very many columns
// and f64 run as the catalogue's body.
#include <algorithm>
#include <cmath>
#include <string>

#include "shader_op.h"

namespace vulkan {
namespace {

constexpr uint32_t kRows = 64, kColumns = 32, kDepth = 16, kMostWidth = 128;  // shaders/attention.comp
constexpr uint32_t kFewRows = 8;  // a product of vectors is faster

struct AttentionNumbers {
  uint64_t scale;
  uint32_t rows, columns, depth, width, heads, masked, causal, zero_nan, mask_row, mask_column, rank;
  uint32_t sizes[KEEL_MAX_RANK], of_mask[KEEL_MAX_RANK];
};

// KEEL_UNIMPLEMENTED where the body is faster or a thread's loops would be too long.
void CheckFused(Op& op, const AttentionNumbers& n, uint32_t blocks) {
  const uint64_t of_tile = CeilDiv(n.depth, kDepth) * 12 + blocks * 14 + 20;  // iterations, rounded up
  const uint64_t tiles = CeilDiv(n.columns, kColumns);
  if (n.rows >= kFewRows && n.width <= kMostWidth && n.depth && n.columns &&
      tiles * of_tile <= 2 * kMostIterations)
    return;
  op.Fail(KEEL_UNIMPLEMENTED, "attention of " + std::to_string(n.rows) + " rows, " +
                                  std::to_string(n.columns) + " columns, vectors of " +
                                  std::to_string(n.depth) + " and " + std::to_string(n.width) +
                                  " in one launch");
}

void Attention(Op& op) {
  const keel_tensor q = op.In(0), v = op.In(2), y = op.Out(0);
  const double scale = op.Float("scale");
  AttentionNumbers n = {};
  n.rows = dim_from_end<uint32_t>(y, 2), n.columns = dim_from_end<uint32_t>(v, 2),
  n.depth = dim_from_end<uint32_t>(q, 1), n.width = dim_from_end<uint32_t>(y, 1);
  n.scale = BitsOf(q, scale == 0 ? 1 / std::sqrt(static_cast<double>(n.depth)) : scale);
  n.rank = static_cast<uint32_t>(y.ndim - 2);
  n.heads = Product32(y.shape, y.shape + n.rank);
  for (uint32_t d = 0; d < n.rank; d++) n.sizes[d] = static_cast<uint32_t>(y.shape[d]);
  n.causal = static_cast<uint32_t>(op.Int("causal")), n.zero_nan = static_cast<uint32_t>(op.Int("zero_nan"));
  n.masked = op.n_in > 3 && op.In(3).dtype.bits;
  if (n.masked) {
    broadcast_strides(op.In(3), y, n.of_mask);
    n.mask_row = n.of_mask[n.rank], n.mask_column = n.of_mask[n.rank + 1];
  }
  const uint32_t blocks = CeilDiv(n.width, 32), groups = CeilDiv(n.rows, kRows);
  CheckFused(op, n, blocks);
  if (groups > kMostGroups) op.Fail(KEEL_UNIMPLEMENTED, "attention in one launch: more than 4194240 rows");
  op.work.Set(n);
  op.work.groups = {keel_count(&y) ? groups : 0, 1, std::min(n.heads, kMostGroups)};
  op.work.pipeline = op.Numbers("attention", y, {blocks});
}

}  // namespace

Impls AttentionImpls() { return {NumbersRow<Attention>("attention", "T=f16|bf16|f32", "groups of 64 rows")}; }

}  // namespace vulkan
