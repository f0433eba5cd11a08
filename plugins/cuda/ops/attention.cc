// attention.cc: attention of f16 and bf16 in one launch of kernels/attention.cu. Few rows, vectors wider than
// 128 or of an odd width and other dtypes run as the catalogue's body, by products and a softmax.
#include <bit>
#include <cmath>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

constexpr int64_t kRows = 128;                            // kernels/attention.cu
constexpr int64_t kFewRows = 16;                          // a warp's rows would be empty
constexpr int64_t kPiece = 8, kNarrow = 64, kWide = 128;  // of vectors

void CheckSizes(Op& op, const keel_tensor& q, const keel_tensor& v) {
  const int64_t rows = dim_from_end(q, 2), width = dim_from_end(q, 1);
  if (rows >= kFewRows && dim_from_end(v, 2) && width == dim_from_end(v, 1) && width && width <= kWide &&
      width % kPiece == 0)
    return;
  op.Fail(KEEL_UNIMPLEMENTED, "attention in one launch: " + std::to_string(rows) + " rows, vectors of " +
                                  std::to_string(width) + " and " + std::to_string(dim_from_end(v, 1)));
}

void Attention(Op& op) {
  const keel_tensor q = op.In(0), v = op.In(2), y = op.Out(0);
  CheckSizes(op, q, v);
  if (op.rc) return;
  const int64_t rows = dim_from_end(q, 2), width = dim_from_end(q, 1), rank = y.ndim - 2,
                matrices = product(y.shape, y.shape + rank);
  const double given = op.Float("scale"),
               scale = given == 0 ? 1 / std::sqrt(static_cast<double>(width)) : given;
  const bool masked = op.n_in > 3 && op.In(3).dtype.bits;
  int64_t of_mask[KEEL_MAX_RANK] = {};
  if (masked) broadcast_strides(op.In(3), y, of_mask);
  std::vector<int64_t> numbers = {matrices,
                                  rows,
                                  dim_from_end(v, 2),
                                  width,
                                  std::bit_cast<int64_t>(scale),
                                  op.Int("causal"),
                                  op.Int("zero_nan"),
                                  masked,
                                  of_mask[rank],
                                  of_mask[rank + 1],
                                  rank};
  numbers.insert(numbers.end(), y.shape, y.shape + rank);
  numbers.insert(numbers.end(), of_mask, of_mask + rank);
  std::vector<uint32_t> uses = {0, 1, 2, op.Result()};
  if (masked) uses.push_back(3);
  const std::string name = "attention_" + std::to_string(width <= kNarrow ? kNarrow : kWide) +
                           (masked || scale < 0 ? "_masked_" : "_") + NameOf(keel::plugin::dtype_of(y));
  op.Add("attention", name, Blocks(CeilDiv(rows, kRows) * matrices, 1), std::move(uses), numbers);
}

}  // namespace

Impls AttentionImpls() { return {Row<Attention>("attention", "T=f16|bf16", "tensor cores")}; }

}  // namespace keel_cuda
