// blas.h: cuBLASLt, opened at the first product that is worth it. Without the library products run by own
// tiles.
#ifndef KEEL_PLUGINS_CUDA_BLAS_H
#define KEEL_PLUGINS_CUDA_BLAS_H
#include "library_call.h"

namespace keel_cuda {

// Row-major matrices c[rows, columns] = a[rows, inner] b[inner, columns] (+ bias[columns]) (+ matrix[rows,
// columns]); ta, tb: stored transposed. The distances between batches are in elements; 0: shared.
struct ProductShape {
  keel_dt dtype;  // f16, bf16, f32 or f64: of all operands
  int64_t rows, columns, inner, batches, a_stride, b_stride;
  bool ta, tb, bias, matrix = false;
  auto operator<=>(const ProductShape&) const = default;
};
bool HasBlas();  // whether the library was found
// Its operands are a, b, c and, where the shape has them, bias and matrix. NULL: cuBLASLt is missing, or has
// no algorithm for this shape. Products of the same shape share one.
keel_rc FindProduct(keel_dev d, const ProductShape& shape, std::shared_ptr<LibraryCall>* out);

}  // namespace keel_cuda
#endif
