// product.h: products of matrices with results in registers (shaders/product.comp), for devices that are
// processors.
#ifndef KEEL_PLUGINS_VULKAN_PRODUCT_H
#define KEEL_PLUGINS_VULKAN_PRODUCT_H
#include "shader_op.h"

namespace vulkan {

// As shaders/batches.glsl reads them: strides of a and b, and of the batch dims of each.
struct ProductNumbers {
  uint32_t rows, columns, inner, depth, a_row, a_inner, b_inner, b_column, batches, rank;
  uint32_t sizes[KEEL_MAX_RANK], of_a[KEEL_MAX_RANK], of_b[KEEL_MAX_RANK];
};
// The numbers after them in product.comp.
struct ImageNumbers {
  uint32_t results, rank, places[KEEL_MAX_RANK], pitch[KEEL_MAX_RANK];
  uint64_t image, table;
};

struct RegisterProduct {
  ProductNumbers n{};
  ImageNumbers image{};
  uint32_t pairs_a = 0, pairs_b = 0;       // whether pairs are one load
  uint32_t left = 0;                       // the operand that is a
  uint32_t with_bias = 0, from_image = 0;  // b is an image in scratch

  // For matrices of the type of t in memory.
  void FindPairs(const keel_tensor& t);
};
inline constexpr uint32_t kProductSlack = 8 * 8;  // elements after an image that are read and not used

// Adds the dispatches, one for each step of the inner dim. false: the grid would be too large.
bool MultiplyInRegisters(Op& op, const RegisterProduct& product);

}  // namespace vulkan
#endif
