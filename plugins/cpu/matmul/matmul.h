// matmul.h: the geometry of a matmul node, shared by the plugin's loops and by regions, and its launch.
#pragma once

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

MatmulShape ReadMatmul(const Node& node);
// Of another op with the operands and the result of a product.
MatmulShape ReadProduct(const Node& node, bool ta, bool tb);

// By the own loops; b: a constant right operand, else null.
keel_rc PrepareLoops(keel_dt dtype, const MatmulShape& s, const void* b, keel_launch* launch);
// By oneDNN or the own loops (choice.h).
keel_rc PrepareMatmul(const Node& node, keel_launch* launch);

}  // namespace keel_cpu
