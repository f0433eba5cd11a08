// matmul.cc: products of matrices, with broadcast batches; linear.
#include <algorithm>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

constexpr int64_t kTile = 16;  // kernels/matmul.cu

struct Product {
  int64_t rows, columns, inner, batches, a_row, a_inner, b_inner, b_column, bias;
  std::vector<int64_t> sizes, of_a, of_b;  // batch dims
};

void Encode(Op& op, const Product& p, std::vector<uint32_t> uses) {
  const keel_tensor c = op.Out(0);
  std::vector<int64_t> numbers = {
      p.rows,    p.columns, p.inner,    p.batches, p.a_row,
      p.a_inner, p.b_inner, p.b_column, p.bias,    static_cast<int64_t>(p.sizes.size())};
  for (const auto* each : {&p.sizes, &p.of_a, &p.of_b})
    numbers.insert(numbers.end(), each->begin(), each->end());
  const int64_t tiles = CeilDiv(p.rows, kTile) * CeilDiv(p.columns, kTile) * p.batches;
  op.Add("matmul", "matmul_" + NameOf(keel::plugin::dtype_of(c)), Blocks(tiles, 1), std::move(uses), numbers);
}

// The distance between batches, if it is the same for all; else -1.
int64_t BatchStride(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t stride = -1, next = 0;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (stride < 0)
      stride = strides[d];
    else if (strides[d] != next)
      return -1;
    next = strides[d] * sizes[d];
  }
  return std::max<int64_t>(stride, 0);
}

// The product by cuBLASLt, if it is large enough, has one distance between batches and there is an algorithm;
// the tiles remain for operands that are not aligned.
void EncodeLarge(Op& op, const Product& p, bool ta, bool tb, const std::vector<uint32_t>& uses) {
  constexpr int64_t kLeast = 64 * 64 * 64;
  const int64_t a = BatchStride(p.sizes, p.of_a), b = BatchStride(p.sizes, p.of_b);
  const bool is_large = p.rows * p.columns * p.batches >= CeilDiv(kLeast, std::max<int64_t>(p.inner, 1));
  ProductShape shape = {
      keel::plugin::dtype_of(op.Out(0)), p.rows, p.columns, p.inner, p.batches, a, b, ta, tb, p.bias != 0};
  if (!b && !ta && (a == p.rows * p.inner || p.batches == 1)) {  // the batches together are one matrix
    shape.rows *= shape.batches;
    shape.batches = 1, shape.a_stride = 0;
  }
  if (is_large && p.inner && a >= 0 && b >= 0 && !op.rc)
    op.rc = FindProduct(op.device, shape, &op.work.product);
  if (!op.rc && !op.work.product) op.rc = KEEL_UNIMPLEMENTED;  // the tiles take it
  if (op.rc) return;
  Encode(op, p, uses);
}

// Strides of t in the batch dims of c: 0 where it has one entry or no dim.
std::vector<int64_t> BatchStrides(const keel_tensor& t, const keel_tensor& c) {
  int64_t strides[KEEL_MAX_RANK];
  broadcast_strides(t, c, strides);
  return {strides, strides + c.ndim - 2};
}

Product MatmulOf(Op& op) {
  const keel_tensor a = op.In(0), b = op.In(1), c = op.Out(0);
  const bool ta = op.Int("ta"), tb = op.Int("tb");
  Product p;
  p.rows = dim_from_end(c, 2), p.columns = dim_from_end(c, 1), p.inner = dim_from_end(a, ta ? 2 : 1);
  p.a_row = ta ? 1 : dim_from_end(a, 1), p.a_inner = ta ? dim_from_end(a, 1) : 1;
  p.b_inner = tb ? 1 : dim_from_end(b, 1), p.b_column = tb ? dim_from_end(b, 1) : 1;
  p.bias = 0;
  p.batches = product(c.shape, c.shape + c.ndim - 2);
  p.sizes.assign(c.shape, c.shape + c.ndim - 2);
  p.of_a = BatchStrides(a, c), p.of_b = BatchStrides(b, c);
  return p;
}
void Matmul(Op& op) { Encode(op, MatmulOf(op), {0, 1, op.Result()}); }
void LargeMatmul(Op& op) { EncodeLarge(op, MatmulOf(op), op.Int("ta"), op.Int("tb"), {0, 1, op.Result()}); }

// The batches together are one matrix.
Product LinearOf(Op& op) {
  const keel_tensor x = op.In(0), w = op.In(1);
  const int64_t inner = w.shape[0], columns = w.shape[1];
  return {product(x.shape, x.shape + x.ndim - 1), columns, inner, 1, inner, 1, columns, 1, 1, {}, {}, {}};
}
void Linear(Op& op) { Encode(op, LinearOf(op), {0, 1, op.Result(), 2}); }
void LargeLinear(Op& op) { EncodeLarge(op, LinearOf(op), false, false, {0, 1, op.Result(), 2}); }

template <void (*FILL)(Op&)>
keel_impl LargeRow(const char* op) {
  keel_impl row = Row<FILL>(op, kFloatTypes, "cuBLASLt");
  row.priority = 1;
  return row;
}

}  // namespace

Impls MatmulImpls() {
  constexpr const char* kName = "tiles of 16 x 16";
  return {LargeRow<LargeMatmul>("matmul"), LargeRow<LargeLinear>("linear"),
          Row<Matmul>("matmul", kNumTypes, kName), Row<Linear>("linear", kFloatTypes, kName)};
}

}  // namespace keel_cuda
