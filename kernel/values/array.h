// array.h: concrete tensors: one 64-byte aligned block of header and elements, or a header that
// borrows memory of somebody else's. Reference-counted; the header never changes after making.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "abi/keel.h"
#include "kernel/base/status.h"
#include "kernel/values/dtype.h"

namespace keel {
inline constexpr uint64_t kAlign = 64;
using ReleaseFn = void (*)(void*);
}  // namespace keel

// The C ABI's handle is this struct, so it is not in the namespace.
struct alignas(keel::kAlign) keel_array {
  std::atomic<int64_t> references{1};
  keel::DType dtype = keel::DType::kNone;
  bool contiguous = true;  // then view.strides is null
  int64_t count = 0;       // elements
  keel_tensor view{};      // shape and strides point into dims and steps below
  int64_t dims[KEEL_MAX_RANK] = {};
  int64_t steps[KEEL_MAX_RANK] = {};
  keel::ReleaseFn release = nullptr;  // of borrowed memory
  void* release_arg = nullptr;

  std::span<const int64_t> shape() const { return {dims, static_cast<size_t>(view.ndim)}; }
  char* data() const { return static_cast<char*>(view.data) + view.byte_offset; }
  uint64_t bytes() const { return static_cast<uint64_t>(count) * keel::SizeOf(dtype); }
};

namespace keel {

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
  ~ArrayRef();
  keel_array* get() const { return array_; }
  keel_array* operator->() const { return array_; }
  keel_array* Detach() { return std::exchange(array_, nullptr); }
  explicit operator bool() const { return array_ != nullptr; }

 private:
  keel_array* array_ = nullptr;
};

void RetainArray(keel_array*);
void ReleaseArray(keel_array*);

// Elements of a shape; errors name negative, too large or too many dims.
absl::StatusOr<int64_t> CountOf(std::span<const int64_t> shape, DType dtype);

// Elements are left as they are found unless zeroed.
absl::StatusOr<ArrayRef> NewArray(DType dtype, std::span<const int64_t> shape, bool zeroed);
// Borrows the tensor's memory; on failure release is not called.
absl::StatusOr<ArrayRef> WrapArray(const keel_tensor& tensor, ReleaseFn release, void* arg);
// Row-major copy of anything that is in host memory.
absl::StatusOr<ArrayRef> CopyArray(const keel_tensor& tensor);

}  // namespace keel
