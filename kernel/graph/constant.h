// constant.h: constants from arrays or literals, and back, without copying (except for literals).
#pragma once

#include <string_view>

#include "kernel/graph/graph.h"
#include "kernel/values/array.h"

namespace keel {

TensorType TypeOf(const keel_array* array);
// Shares the array, which must be contiguous.
Constant ConstantOf(std::string_view name, ArrayRef array);
// An unnamed scalar; `element` is one element of that dtype.
Constant ScalarOf(DType dtype, const void* element);

// The constant as a tensor with these dims. Both must outlive it.
keel_tensor ViewOf(const Constant& constant, const Dims& dims);
// An array that shares the constant's bytes.
absl::StatusOr<ArrayRef> ArrayOf(const Constant& constant);

}  // namespace keel
