// int8.cc: matmul_integer: products of 8-bit integers less their zero points (kernels/int8.cu).
#include <bit>

#include "emit/emit.h"
#include "product.h"

namespace keel_cuda {
namespace {

constexpr int64_t kSize = 64;  // of a tile of int8_by_warps

// As kernels/int8.cu reads it.
struct Side {
  int64_t outer, inner, zero_outer, zero_inner, flip, has_zero;
};
struct Plan {
  int64_t rows, columns, inner, batches;
  Side a, b;
  int64_t rank;
};

// Strides of t over the dims of c, with the sizes of a matrix in the last two.
struct Strides {
  int64_t of[KEEL_MAX_RANK];
  Strides(const keel_tensor& t, keel_tensor c, int64_t rows, int64_t columns) {
    c.shape[c.ndim - 2] = rows, c.shape[c.ndim - 1] = columns;
    broadcast_strides(t, c, of);
  }
};

void MatmulInteger(Op& op) {
  const keel_tensor a = op.In(0), b = op.In(1), c = op.Out(0);
  Plan p = {};
  p.rows = dim_from_end(c, 2), p.columns = dim_from_end(c, 1), p.inner = dim_from_end(a, 1);
  p.batches = product(c.shape, c.shape + c.ndim - 2);
  p.rank = c.ndim - 2;
  const auto zero = [&](uint32_t i) { return i < op.n_in ? op.In(i) : keel_tensor{}; };
  const keel_tensor za = zero(2), zb = zero(3);
  const Strides of_a(a, c, p.rows, p.inner), of_b(b, c, p.inner, p.columns), of_za(za, c, p.rows, p.inner),
      of_zb(zb, c, p.inner, p.columns);
  const auto flip = [](const keel_tensor& t) { return keel::plugin::dtype_of(t) == KEEL_I8 ? 128 : 0; };
  const int64_t row = p.rank, column = p.rank + 1;
  p.a = {of_a.of[row], of_a.of[column], of_za.of[row], of_za.of[column], flip(a), za.dtype.bits != 0};
  if (p.rows == 1) p.a.outer = p.inner;  // the kernel takes it for the length of a row
  p.b = {of_b.of[column], of_b.of[row], of_zb.of[column], of_zb.of[row], flip(b), zb.dtype.bits != 0};
  const auto words = std::bit_cast<std::array<int64_t, sizeof(Plan) / sizeof(int64_t)>>(p);
  std::vector<int64_t> numbers(words.begin(), words.end());
  for (const int64_t* each : {static_cast<const int64_t*>(c.shape), of_a.of, of_b.of, of_za.of, of_zb.of})
    numbers.insert(numbers.end(), each, each + p.rank);
  const uint32_t none = 0;  // an operand that is not read
  const std::vector<uint32_t> uses = {0, 1, op.Result(), p.a.has_zero ? 2 : none, p.b.has_zero ? 3 : none};
  const Tiles tiles(p.rows, p.columns, p.batches);
  if (p.a.zero_inner || p.b.zero_inner)
    return op.Add("int8", std::string("int8") + tiles.suffix, tiles.blocks, uses, numbers);
  op.Add("int8", "int8_by_warps", Blocks(CeilDiv(p.rows, kSize) * CeilDiv(p.columns, kSize) * p.batches, 1),
         uses, numbers);
}

}  // namespace

Impls Int8Impls() { return {Row<MatmulInteger>("matmul_integer", nullptr, "tiles of 8-bit integers")}; }

}  // namespace keel_cuda
