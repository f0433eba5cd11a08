// product.cc: see product.h.
#include "product.h"

#include "sdk/plugin/body.h"

namespace keel_cuda {
namespace {

// Strides of t in the batch dims of c: 0 where it has one entry or no dim.
std::vector<int64_t> BatchStrides(const keel_tensor& t, const keel_tensor& c) {
  int64_t strides[KEEL_MAX_RANK];
  broadcast_strides(t, c, strides);
  return {strides, strides + c.ndim - 2};
}

}  // namespace

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
  p.uses = {0, 1, op.Result()};
  return p;
}

Product LinearOf(Op& op) {
  const keel_tensor x = op.In(0), w = op.In(1);
  const int64_t inner = w.shape[0], columns = w.shape[1];
  return {.rows = product(x.shape, x.shape + x.ndim - 1),
          .columns = columns,
          .inner = inner,
          .batches = 1,
          .a_row = inner,
          .a_inner = 1,
          .b_inner = columns,
          .b_column = 1,
          .bias = 1,
          .sizes = {},
          .of_a = {},
          .of_b = {},
          .uses = {0, 1, op.Result(), 2}};
}

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

Product WithRowsOfBatches(Product p) {
  const bool adjacent = !BatchStride(p.sizes, p.of_b) && BatchStride(p.sizes, p.of_a) == p.rows * p.a_row;
  if (!adjacent && p.batches != 1) return p;
  p.rows *= p.batches, p.batches = 1;
  p.sizes.clear(), p.of_a.clear(), p.of_b.clear();
  return p;
}

std::optional<ProductShape> LargeShape(Op& op, const Product& p, bool ta, bool tb) {
  constexpr int64_t kLeast = 64 * 64 * 64;
  const int64_t a = BatchStride(p.sizes, p.of_a), b = BatchStride(p.sizes, p.of_b);
  const bool is_large = p.rows * p.columns * p.batches >= CeilDiv(kLeast, std::max<int64_t>(p.inner, 1));
  if (!is_large || !p.inner || a < 0 || b < 0) return {};
  return ProductShape{
      keel::plugin::dtype_of(op.Out(0)), p.rows, p.columns, p.inner, p.batches, a, b, ta, tb, p.bias != 0};
}

Tiles::Tiles(int64_t rows, int64_t columns, int64_t batches) {
  constexpr int64_t kSmall = 16, kLarge = 64, kFew = 64;
  const auto count = [&](int64_t size) { return CeilDiv(rows, size) * CeilDiv(columns, size) * batches; };
  const bool is_small = std::min(rows, columns) <= kLarge / 2 || count(kLarge) < kFew;
  suffix = is_small ? "_small" : "";
  blocks = Blocks(count(is_small ? kSmall : kLarge), 1);
}

}  // namespace keel_cuda
