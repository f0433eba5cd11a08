// constant.h: a constant from an array or a literal, and back. No byte is copied but a literal's.
#pragma once

#include <string_view>

#include "kernel/graph/graph.h"
#include "kernel/values/array.h"

namespace keel {

TensorType TypeOf(const keel_array* array);
// Shares the array, which must be contiguous.
Constant ConstantOf(std::string_view name, ArrayRef array);
// An unnamed scalar; `element` holds one element of that dtype.
Constant ScalarOf(DType dtype, const void* element);

// The constant as a tensor of these dims, which, like the constant, must outlive it.
keel_tensor ViewOf(const Constant& constant, const Dims& dims);
// An array that shares the constant's bytes.
absl::StatusOr<ArrayRef> ArrayOf(const Constant& constant);

}  // namespace keel
