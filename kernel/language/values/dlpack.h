// dlpack.h: DLPack's structs for zero-copy exchange of tensors, and their conversion to and from arrays.
#pragma once

#include "absl/functional/function_ref.h"
#include "kernel/language/values/array.h"

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

inline constexpr uint64_t kDlpackReadOnly = 1,
                          kDlpackPadded = 4;  // padded: one element of less than a byte each

// On success the array owns `take`; on failure the caller keeps it. wrap: WrapArray, or its counterpart for
// device memory.
using WrapFn = absl::FunctionRef<absl::StatusOr<ArrayRef>(const keel_tensor&, ReleaseFn, void* arg)>;
absl::StatusOr<ArrayRef> FromDlpack(DLManagedTensor* take, WrapFn wrap);
absl::StatusOr<ArrayRef> FromDlpack(DLManagedTensorVersioned* take, WrapFn wrap);
// Holds a reference until the consumer calls the deleter.
DLManagedTensor* ToDlpackLegacy(keel_array*);
DLManagedTensorVersioned* ToDlpack(keel_array*);

}  // namespace keel
