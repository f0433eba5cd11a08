// blas.h: cuBLASLt, opened at the first product that is worth it. Without the library products run by own
// tiles.
#ifndef KEEL_PLUGINS_CUDA_BLAS_H
#define KEEL_PLUGINS_CUDA_BLAS_H
#include <array>
#include <memory>

#include "queue.h"

namespace keel_cuda {

// Row-major matrices c[rows, columns] = a[rows, inner] b[inner, columns] (+ bias[columns]); ta, tb: stored
// transposed. The distances between batches are in elements; 0: shared.
struct ProductShape {
  keel_dt dtype;  // f16, bf16, f32 or f64: of all operands
  int64_t rows, columns, inner, batches, a_stride, b_stride;
  bool ta, tb, bias;
  auto operator<=>(const ProductShape&) const = default;
};
constexpr uint64_t kBlasAlignment = 16;  // of all operands, in bytes; algorithms are chosen for it

struct BlasProduct;  // a shape with its algorithm, for one device
struct BlasOperands {
  uint64_t a, b, c, bias;  // addresses
};
// NULL: cuBLASLt is missing, or has no algorithm for this shape. Products of the same shape share one.
keel_rc FindProduct(keel_dev d, const ProductShape& shape, std::shared_ptr<BlasProduct>* out);
// Of a, b, c, bias.
const std::array<uint64_t, 4>& BytesOf(const BlasProduct& product);
// Encodes it. In a stream capture the graph keeps the addresses.
keel_rc RunProduct(keel_queue q, BlasProduct& product, const BlasOperands& at);

}  // namespace keel_cuda
#endif
