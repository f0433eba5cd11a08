// matmul.cc: products of matrices, with broadcast batches; linear. gemv.cc has the ones of few rows or
// columns.
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

// The product by cuBLASLt, if there is an algorithm; the tiles remain for operands that are not aligned.
void EncodeLarge(Op& op, const Product& p, bool ta, bool tb) {
  const std::optional<ProductShape> shape = LargeShape(op, p, ta, tb);
  if (shape && !op.rc) op.rc = FindProduct(op.device, *shape, &op.work.product);
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
