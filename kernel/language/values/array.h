// array.h: concrete tensors: references to arrays, and their construction. array_header.h has the layout.
// Blocks are allocated from the free lists of blocks.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernel/base/status.h"
#include "kernel/language/values/array_header.h"
#include "kernel/language/values/dtype.h"

namespace keel {

inline uint8_t TypeKey(DType dtype, int32_t rank) {
  constexpr int32_t kRanks = KEEL_MAX_RANK + 1;
  static_assert((static_cast<int>(DType::kCount) - 1) * kRanks < kSymbolicKey);
  return static_cast<uint8_t>((static_cast<int32_t>(dtype) - 1) * kRanks + rank + 1);
}

// Owns one reference.
class ArrayRef {
 public:
  ArrayRef() = default;
  explicit ArrayRef(keel_array* adopted) : array_(adopted) {}
  static ArrayRef Share(keel_array* array);
  ArrayRef(const ArrayRef& o) : ArrayRef(o.array_ ? Share(o.array_) : ArrayRef()) {}
  ArrayRef(ArrayRef&& o) noexcept : array_(std::exchange(o.array_, nullptr)) {}
  ArrayRef& operator=(ArrayRef o) noexcept {
    std::swap(array_, o.array_);
    return *this;
  }
  ~ArrayRef() {
    if (array_) Release(array_);
  }
  keel_array* get() const { return array_; }
  keel_array* operator->() const { return array_; }
  keel_array* Detach() { return std::exchange(array_, nullptr); }
  explicit operator bool() const { return array_ != nullptr; }

 private:
  static void Release(keel_array*);
  keel_array* array_ = nullptr;
};

// A number that is unique in the process. fresh: no other thread has access to the array yet.
uint64_t SerialOf(keel_array*, bool fresh = false);

void RetainArray(keel_array*);
void ReleaseArray(keel_array*);  // null is allowed

// Number of elements. Errors name a dim that is negative or too large, or too many dims.
absl::StatusOr<int64_t> CountOf(std::span<const int64_t> shape, DType dtype);

// Elements are uninitialized unless `zeroed`.
absl::StatusOr<ArrayRef> NewArray(DType dtype, std::span<const int64_t> shape, bool zeroed);
// The same for a validated shape of `count` elements; null: out of memory.
keel_array* NewResult(DType dtype, std::span<const int64_t> shape, int64_t count);
// The header of a row-major array in external memory, which release(block) frees and to_host copies. Its
// type_key differs from that of every host array, so lookups by key never confuse the two.
struct DeviceMemory {
  keel_devid device;
  void* data;
  DeviceBlock* block;
  ReleaseFn release;
  ToHostFn to_host;
};
absl::StatusOr<ArrayRef> NewDeviceHeader(DType dtype, std::span<const int64_t> shape,
                                         const DeviceMemory& memory);
// A copy of an array in device memory: waits; the error of the run that computes it. Others: the array
// itself.
absl::StatusOr<ArrayRef> OnHost(ArrayRef array);
// The number in a bool[], i32[] or i64[] in host memory.
int64_t IntegerOf(const keel_array& scalar);
// A header without elements; unknown dims are -1.
absl::StatusOr<ArrayRef> NewSymbolic(DType dtype, std::span<const int64_t> shape,
                                     std::unique_ptr<SymbolicValue> value);
// Borrows the tensor's memory. On failure `release` is not called.
absl::StatusOr<ArrayRef> WrapArray(const keel_tensor& tensor, ReleaseFn release, void* arg);
// The dtype of a tensor in any memory; an error if it has none or its rank is impossible.
absl::StatusOr<DType> CheckType(const keel_tensor& tensor);
bool InHostMemory(const keel_tensor& tensor);
bool IsRowMajor(const keel_tensor& tensor);
// Row-major copy of a tensor in host memory.
absl::StatusOr<ArrayRef> CopyArray(const keel_tensor& tensor);

}  // namespace keel
