// dlpack.h: the two structs by which other programs hand tensors over without a copy, as DLPack 1.0
// lays them out, and the exchange with arrays.
#pragma once

#include "kernel/values/array.h"

struct DLManagedTensor {  // before DLPack 1.0
  keel_tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  keel_tensor dl_tensor;
};

namespace keel {

inline constexpr uint64_t kDlpackReadOnly = 1;

// On success the array owns `take`; on failure it stays the caller's.
absl::StatusOr<ArrayRef> FromDlpack(DLManagedTensor* take);
absl::StatusOr<ArrayRef> FromDlpack(DLManagedTensorVersioned* take);
// Holds a reference until the consumer calls the deleter.
DLManagedTensor* ToDlpackLegacy(keel_array*);
DLManagedTensorVersioned* ToDlpack(keel_array*);

}  // namespace keel
