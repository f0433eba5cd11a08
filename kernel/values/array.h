// array.h: concrete tensors. A keel_array is one 64-byte aligned block with header and elements, or a header
// that borrows external memory. Reference-counted; the header is immutable after construction. Blocks are
// allocated from the free lists of blocks.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "abi/keel_handle.h"
#include "kernel/base/status.h"
#include "kernel/values/dtype.h"

namespace keel {
inline constexpr uint64_t kAlign = 64;
using ReleaseFn = void (*)(void*);
struct DeviceBlock;  // kernel/device/move.h
// Replace the rank in type_key for arrays whose elements the host cannot read.
inline constexpr uint8_t kSymbolicKey = 0xe0;  // a value of a trace: no elements
inline constexpr uint8_t kDeviceKey = 0xf0;    // the elements are in device memory

// The value that a symbolic array represents, owned by the array. kernel/trace has the only subclass.
struct SymbolicValue {
  virtual ~SymbolicValue() = default;
  virtual std::string Describe() const = 0;  // "value \"h\" of the trace of \"f\""
};
}  // namespace keel

// The C ABI's handle is this struct, so it is outside the namespace. A call on scalars reads the first 64
// bytes only.
struct alignas(keel::kAlign) keel_array {
  std::atomic<int32_t> references{1};
  keel::DType dtype = keel::DType::kNone;
  uint8_t type_key = 0;    // dtype and rank: the key of the eager lookup
  bool contiguous = true;  // then view.strides is null
  uint8_t block = 0;       // its size class (blocks.h)
  union {
    int64_t count = 0;      // elements
    keel_array* next_free;  // of a block in a free list
  };
  keel_tensor view{};  // shape points to dims, strides to Borrowed::strides
  int64_t dims[KEEL_MAX_RANK] = {};
  std::atomic<uint64_t> serial{0};  // identifies the array on tapes; 0: not yet assigned

  std::span<const int64_t> shape() const { return {dims, static_cast<size_t>(view.ndim)}; }
  char* data() const { return static_cast<char*>(view.data) + view.byte_offset; }
  uint64_t bytes() const { return static_cast<uint64_t>(count) * keel::SizeOf(dtype); }
  // null: the elements are in host memory
  keel::DeviceBlock* device_block() const { return type_key >= keel::kDeviceKey ? DeviceBlockOf() : nullptr; }
  // null: a concrete array
  keel::SymbolicValue* symbolic() const {
    return (type_key & 0xf0) == keel::kSymbolicKey ? SymbolicOf() : nullptr;
  }
  char* payload() { return reinterpret_cast<char*>(this) + sizeof(keel_array); }

 private:
  keel::DeviceBlock* DeviceBlockOf() const;
  keel::SymbolicValue* SymbolicOf() const;
};
static_assert(sizeof(keel_array) == 192);

namespace keel {

inline uint8_t TypeKey(DType dtype, int32_t rank) {
  static_assert(static_cast<int>(DType::kCount) <= 16 && KEEL_MAX_RANK < 16);
  return static_cast<uint8_t>(static_cast<int32_t>(dtype) | rank << 4);
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
// The header of a row-major array in external memory, which release(block) frees. Its type_key differs from
// that of every host array, so lookups by key never confuse the two.
absl::StatusOr<ArrayRef> NewDeviceHeader(DType dtype, std::span<const int64_t> shape, keel_devid device,
                                         void* data, ReleaseFn release, DeviceBlock* block);
// A header without elements; unknown dims are -1.
absl::StatusOr<ArrayRef> NewSymbolic(DType dtype, std::span<const int64_t> shape,
                                     std::unique_ptr<SymbolicValue> value);
// Borrows the tensor's memory. On failure `release` is not called.
absl::StatusOr<ArrayRef> WrapArray(const keel_tensor& tensor, ReleaseFn release, void* arg);
// Row-major copy of a tensor in host memory.
absl::StatusOr<ArrayRef> CopyArray(const keel_tensor& tensor);

}  // namespace keel
