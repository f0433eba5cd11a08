// array_header.h: the layout of arrays. A keel_array is one 64-byte aligned block with header and elements,
// or a header that borrows external memory. Reference-counted; the header is immutable after construction.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

#include "abi/keel_handle.h"
#include "kernel/language/values/dtype.h"

namespace keel {
inline constexpr uint64_t kAlign = 64;
using ReleaseFn = void (*)(void*);
using ToHostFn = absl::StatusOr<class ArrayRef> (*)(keel_array*);
struct DeviceBlock;  // kernel/runtime/device/move.h
// type_key is 0 (none), TypeKey(dtype, rank) for arrays in host memory, or, plus the dtype, one of these.
inline constexpr uint8_t kSymbolicKey = 208;  // a value of a trace: no elements
inline constexpr uint8_t kDeviceKey = 232;    // the elements are in device memory
static_assert(static_cast<int>(DType::kCount) <= kDeviceKey - kSymbolicKey &&
              static_cast<int>(DType::kCount) + kDeviceKey <= 256);

// The value that a symbolic array represents, owned by the array. kernel/program/trace has the only subclass.
struct SymbolicValue {
  virtual ~SymbolicValue() = default;
  virtual std::string Describe() const = 0;  // "value \"h\" of the trace of \"f\""
};

// After the header of an array that borrows its elements.
struct Borrowed {
  int64_t strides[KEEL_MAX_RANK];
  ReleaseFn release;
  void* arg;
  ToHostFn to_host;  // of an array in device memory
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
  uint64_t bytes() const { return keel::BytesOf(dtype, count); }
  // null: the elements are in host memory
  keel::DeviceBlock* device_block() const {
    return type_key > keel::kDeviceKey ? static_cast<keel::DeviceBlock*>(borrowed()->arg) : nullptr;
  }
  // null: a concrete array
  keel::SymbolicValue* symbolic() const {
    const bool none = type_key <= keel::kSymbolicKey || type_key > keel::kDeviceKey;
    return none ? nullptr : static_cast<keel::SymbolicValue*>(borrowed()->arg);
  }
  char* payload() { return reinterpret_cast<char*>(this) + sizeof(keel_array); }
  // Of a header that borrows its elements.
  keel::Borrowed* borrowed() { return reinterpret_cast<keel::Borrowed*>(payload()); }
  const keel::Borrowed* borrowed() const {
    return reinterpret_cast<const keel::Borrowed*>(reinterpret_cast<const char*>(this) + sizeof(keel_array));
  }
};
static_assert(sizeof(keel_array) == 192);
