// constant.h: constants from arrays or literals, and back, without copying (except for literals).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernel/language/opset/opset.h"
#include "kernel/language/values/array.h"

namespace keel {

// Bytes of a file that are not aligned to the size of their dtype. An aligned copy is made on demand; it is
// kept until `Drop`, and longer by who holds it, so that all share one.
class Misaligned {
 public:
  Misaligned(const void* bytes, uint64_t size) : bytes_(bytes), size_(size) {}
  // The copy. Null: no memory. mapped: the bytes are in a file mapping, whose pages need not stay.
  std::shared_ptr<const void> Copy(bool mapped);
  void Drop();

 private:
  const void* bytes_;
  uint64_t size_;
  std::shared_ptr<const void> kept_;
  std::weak_ptr<const void> copy_;
};

// The bytes of a constant; `owner` keeps them alive (a mapping, an array, a vector).
struct Constant {
  std::string name;            // unique in the module; "" only for inline scalar literals
  TensorType type;             // concrete dims
  const void* data = nullptr;  // row-major, aligned to the dtype's size unless `misaligned` is set
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // in a file mapping: its pages can be dropped and are read again on access
  std::shared_ptr<Misaligned> misaligned = nullptr;  // of a file: `data` may be read byte by byte only
};

TensorType TypeOf(const keel_array* array);
// Shares the array, which must be contiguous.
Constant ConstantOf(std::string_view name, ArrayRef array);
// An unnamed scalar; `element` is one element of that dtype.
Constant ScalarOf(DType dtype, const void* element);

// What holds aligned bytes of the constant, and these; null and null: no memory for a copy.
struct AlignedData {
  const void* data;
  std::shared_ptr<const void> holder;  // null: the constant
};
AlignedData DataOf(const Constant& constant);
// The constant with aligned bytes, at least if there is memory.
Constant Aligned(Constant constant);

// The constant's bytes as a tensor of this type. Both must outlive it.
keel_tensor ViewOf(const Constant& constant, const TensorType& type);
// An array that shares the constant's bytes.
absl::StatusOr<ArrayRef> ArrayOf(const Constant& constant);

}  // namespace keel
