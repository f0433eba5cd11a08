// constant.h: constants from arrays or literals, and back, without copying (except for literals).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernel/language/opset/opset.h"
#include "kernel/language/values/array.h"

namespace keel {

// The bytes of a constant; `owner` keeps them alive (a mapping, an array, a vector).
struct Constant {
  std::string name;            // unique in the module; "" only for inline scalar literals
  TensorType type;             // concrete dims
  const void* data = nullptr;  // row-major, aligned to the dtype's size
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // in a file mapping: its pages can be dropped and are read again on access
};

TensorType TypeOf(const keel_array* array);
// Shares the array, which must be contiguous.
Constant ConstantOf(std::string_view name, ArrayRef array);
// An unnamed scalar; `element` is one element of that dtype.
Constant ScalarOf(DType dtype, const void* element);

// The constant's bytes as a tensor of this type. Both must outlive it.
keel_tensor ViewOf(const Constant& constant, const TensorType& type);
// An array that shares the constant's bytes.
absl::StatusOr<ArrayRef> ArrayOf(const Constant& constant);

}  // namespace keel
