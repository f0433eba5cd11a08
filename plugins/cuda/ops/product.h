// product.h: matmul and linear as one product of matrices, which several impls take.
#ifndef KEEL_PLUGINS_CUDA_OPS_PRODUCT_H
#define KEEL_PLUGINS_CUDA_OPS_PRODUCT_H
#include <optional>

#include "blas.h"
#include "op.h"

namespace keel_cuda {

constexpr int32_t kLibraryPriority = 2;  // of products by cuBLASLt; own tiles have 0

// c[rows, columns] = a[rows, inner] b[inner, columns] + bias[columns] for each batch; strides of the
// matrices.
struct Product {
  int64_t rows, columns, inner, batches, a_row, a_inner, b_inner, b_column, bias;
  std::vector<int64_t> sizes, of_a, of_b;  // batch dims, and strides there
  std::vector<uint32_t> uses;              // a, b, c, bias: operands of a kernel
};
constexpr int64_t kMostVectors = 8;  // rows or columns that kernels/gemv.cu takes
Product MatmulOf(Op& op);
Product LinearOf(Op& op);

// The distance between batches, if it is the same for all; else -1.
int64_t BatchStride(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides);
// The rows of all batches are one matrix where they are adjacent and share b.
Product WithRowsOfBatches(Product p);

// For cuBLASLt, if it is large enough and has one distance between batches.
std::optional<ProductShape> LargeShape(Op& op, const Product& p, bool ta, bool tb);

// Tiles of kernels/tiles.cuh for a product: 64 x 64 results, or 16 x 16 where large ones would leave most of
// the device idle.
struct Tiles {
  const char* suffix;  // of a kernel's name
  uint32_t blocks;
  Tiles(int64_t rows, int64_t columns, int64_t batches);
};

}  // namespace keel_cuda
#endif
