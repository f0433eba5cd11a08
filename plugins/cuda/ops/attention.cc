// attention.cc: attention in one launch, of f16 and bf16 by kernels/attention.cu, of f32 by
// kernels/attention_f32.cu. Few rows, vectors wider than 128 or of an odd width and f64 run as the
// catalogue's body, by products and a softmax; so does f32 where these products may be of tf32, which tensor
// cores compute.
#include <bit>
#include <cmath>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

struct Kernels {
  const char* file;
  int64_t rows, piece;  // of a block; whose multiples are widths of vectors
  const char* masked;   // part of the name where there is a mask or a negative scale
};
constexpr Kernels kOfHalves = {"attention", 128, 8, "_masked"}, kOfSingles = {"attention_f32", 64, 4, ""};
constexpr int64_t kFewRows = 16;              // most threads would have no row
constexpr int64_t kNarrow = 64, kWide = 128;  // of vectors

void CheckSizes(Op& op, const Kernels& kernels, const keel_tensor& q, const keel_tensor& v) {
  const int64_t rows = dim_from_end(q, 2), width = dim_from_end(q, 1);
  if (rows >= kFewRows && dim_from_end(v, 2) && width == dim_from_end(v, 1) && width && width <= kWide &&
      width % kernels.piece == 0)
    return;
  op.Fail(KEEL_UNIMPLEMENTED, "attention in one launch: " + std::to_string(rows) + " rows, vectors of " +
                                  std::to_string(width) + " and " + std::to_string(dim_from_end(v, 1)));
}

void Attend(Op& op, const Kernels& kernels) {
  const keel_tensor q = op.In(0), v = op.In(2), y = op.Out(0);
  CheckSizes(op, kernels, q, v);
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
                           (masked || scale < 0 ? kernels.masked : "") + "_" +
                           NameOf(keel::plugin::dtype_of(y));
  op.Add(kernels.file, name, Blocks(CeilDiv(rows, kernels.rows) * matrices, 1), std::move(uses), numbers);
}

void AttendHalves(Op& op) { Attend(op, kOfHalves); }
void AttendSingles(Op& op) {
  if (settings().tf32)
    return op.Fail(KEEL_UNIMPLEMENTED, "attention in one launch: products of tf32 are faster");
  Attend(op, kOfSingles);
}

}  // namespace

Impls AttentionImpls() {
  return {Row<AttendHalves>("attention", "T=f16|bf16", "tensor cores"),
          Row<AttendSingles>("attention", "T=f32", "one launch")};
}

}  // namespace keel_cuda
