// matmul.cc: products of matrices, with broadcast batches; linear. gemv.cc has the ones of few rows or
// columns.
#include "blas.h"
#include "emit/emit.h"
#include "product.h"

namespace keel_cuda {
namespace {

void Encode(Op& op, const Product& p) {
  const keel_tensor c = op.Out(0);
  std::vector<int64_t> numbers = {
      p.rows,    p.columns, p.inner,    p.batches, p.a_row,
      p.a_inner, p.b_inner, p.b_column, p.bias,    static_cast<int64_t>(p.sizes.size())};
  for (const auto* each : {&p.sizes, &p.of_a, &p.of_b})
    numbers.insert(numbers.end(), each->begin(), each->end());
  const Tiles tiles(p.rows, p.columns, p.batches);
  const std::string name = std::string("matmul") + tiles.suffix + "_";
  op.Add("matmul", name + NameOf(keel::plugin::dtype_of(c)), tiles.blocks, p.uses, numbers);
}

// The product by cuBLASLt, if it is large enough, has one distance between batches and there is an algorithm;
// the tiles remain for operands that are not aligned.
void EncodeLarge(Op& op, const Product& p, bool ta, bool tb) {
  constexpr int64_t kLeast = 64 * 64 * 64;
  const int64_t a = BatchStride(p.sizes, p.of_a), b = BatchStride(p.sizes, p.of_b);
  const bool is_large = p.rows * p.columns * p.batches >= CeilDiv(kLeast, std::max<int64_t>(p.inner, 1));
  const ProductShape shape = {
      keel::plugin::dtype_of(op.Out(0)), p.rows, p.columns, p.inner, p.batches, a, b, ta, tb, p.bias != 0};
  if (is_large && p.inner && a >= 0 && b >= 0 && !op.rc)
    op.rc = FindProduct(op.device, shape, &op.work.product);
  if (!op.rc && !op.work.product) op.rc = KEEL_UNIMPLEMENTED;  // the tiles take it
  if (op.rc) return;
  Encode(op, p);
}

void Matmul(Op& op) { Encode(op, MatmulOf(op)); }
void LargeMatmul(Op& op) { EncodeLarge(op, WithRowsOfBatches(MatmulOf(op)), op.Int("ta"), op.Int("tb")); }
void Linear(Op& op) { Encode(op, LinearOf(op)); }
void LargeLinear(Op& op) { EncodeLarge(op, LinearOf(op), false, false); }

template <void (*FILL)(Op&)>
keel_impl LargeRow(const char* op) {
  keel_impl row = Row<FILL>(op, kFloatTypes, "cuBLASLt");
  row.priority = kLibraryPriority;
  return row;
}

}  // namespace

Impls MatmulImpls() {
  constexpr const char* kName = "tiles";
  return {LargeRow<LargeMatmul>("matmul"), LargeRow<LargeLinear>("linear"),
          Row<Matmul>("matmul", kNumTypes, kName), Row<Linear>("linear", kFloatTypes, kName)};
}

}  // namespace keel_cuda
