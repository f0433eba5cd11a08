#include "kernel/language/values/array.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_join.h"
#include "kernel/language/values/blocks.h"

namespace keel {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr int64_t kMaxArrayDim = int64_t{1} << 40;

}  // namespace

absl::StatusOr<DType> CheckType(const keel_tensor& t) {
  std::optional<DType> dtype = DTypeOf(t.dtype);
  if (!dtype)
    return Invalid("dtype code ", t.dtype.code, ", ", t.dtype.bits, " bits, ", t.dtype.lanes,
                   " lanes is not a dtype of Keel");
  if (t.ndim < 0 || t.ndim > KEEL_MAX_RANK)
    return Invalid("a tensor's ndim is ", t.ndim, "; 0 to ", KEEL_MAX_RANK, " are possible");
  if (t.ndim > 0 && !t.shape) return Invalid("a tensor's shape is NULL, but ndim is ", t.ndim);
  return *dtype;
}

bool InHostMemory(const keel_tensor& t) {
  constexpr int32_t kCpu = 1, kCudaHost = 3;  // DLPack's device types that the host can read
  return t.device.type == kCpu || t.device.type == kCudaHost;
}

bool IsRowMajor(const keel_tensor& t) {
  if (!t.strides || std::find(t.shape, t.shape + t.ndim, 0) != t.shape + t.ndim) return true;
  int64_t step = 1;
  for (int32_t d = t.ndim; d-- > 0;) {
    if (t.shape[d] != 1 && t.strides[d] != step) return false;
    step *= t.shape[d];
  }
  return true;
}

namespace {

absl::StatusOr<DType> CheckTensor(const keel_tensor& t) {
  ASSIGN_OR_RETURN(DType dtype, CheckType(t));
  if (!InHostMemory(t))
    return Unimplemented("memory of device type ", t.device.type, " (DLPack); copy it to host memory first");
  if (IsPacked(dtype) && !IsRowMajor(t))
    return Invalid("a tensor of ", Name(dtype),
                   " is strided; its elements are packed, so it must be row-major");
  return dtype;
}

absl::Status NoData(int64_t count) {
  return Invalid("a tensor's data is NULL, but the tensor has ", count, " elements");
}

// No element may be farther than kMaxBytes from `data`.
[[gnu::cold, gnu::noinline]] absl::Status CheckReach(const keel_tensor& t, uint32_t size) {
  if (t.byte_offset > kMaxBytes)
    return Invalid("byte_offset is ", t.byte_offset, "; at most 2^40 is possible");
  int64_t most = kMaxBytes / size, reach = 0;
  for (int32_t d = 0; d < t.ndim && t.strides; d++) {
    int64_t way = 0;
    if (t.shape[d] > 1 && (__builtin_mul_overflow(t.strides[d], t.shape[d] - 1, &way) || way > most - reach ||
                           way < reach - most))
      return Invalid("strides[", d, "] is ", t.strides[d], ": with ", t.shape[d], " entries of ", size,
                     " bytes that is farther from data than 2^40 bytes");
    reach += way < 0 ? -way : way;
  }
  return absl::OkStatus();
}

void SetType(keel_array* a, DType dtype, keel_dtype parts, std::span<const int64_t> shape, int64_t count) {
  a->dtype = dtype;
  a->type_key = TypeKey(dtype, static_cast<int32_t>(shape.size()));
  a->count = count;
  a->view.ndim = static_cast<int32_t>(shape.size());
  a->view.dtype = parts;
  for (size_t d = 0; d < shape.size(); d++) a->dims[d] = shape[d];
}

// Recursive copy into row-major order. `step` is in bytes.
void CopyStrided(const keel_tensor& t, uint32_t size, char* to, const char* from, int32_t dim) {
  int64_t step = t.strides[dim] * size, block = size;
  for (int32_t d = dim + 1; d < t.ndim; d++) block *= t.shape[d];
  for (int64_t i = 0; i < t.shape[dim]; i++, to += block, from += step)
    if (dim + 1 == t.ndim)
      std::memcpy(to, from, size);
    else
      CopyStrided(t, size, to, from, dim + 1);
}

}  // namespace

ArrayRef ArrayRef::Share(keel_array* array) {
  RetainArray(array);
  return ArrayRef(array);
}

uint64_t SerialOf(keel_array* a, bool fresh) {
  // Serials that a thread reserves at once, to avoid contention on the counter.
  constexpr uint64_t kReserved = 4096;
  static std::atomic<uint64_t> taken{0};
  static __thread uint64_t last __attribute__((tls_model("initial-exec"))) = 0;
  uint64_t serial = a->serial.load(std::memory_order_relaxed);
  if (serial) return serial;
  if (last % kReserved == 0) last = taken.fetch_add(kReserved, std::memory_order_relaxed);
  last++;
  if (fresh) {
    a->serial.store(last, std::memory_order_relaxed);
    return last;
  }
  return a->serial.compare_exchange_strong(serial, last, std::memory_order_relaxed) ? last : serial;
}

void RetainArray(keel_array* a) { a->references.fetch_add(1, std::memory_order_relaxed); }

void ReleaseArray(keel_array* a) {
  if (!a) return;
  // A sole owner, the common case, needs no atomic write.
  if (a->references.load(std::memory_order_acquire) != 1 &&
      a->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  FreeBlock(a);
}

void ArrayRef::Release(keel_array* a) { ReleaseArray(a); }

absl::StatusOr<int64_t> CountOf(std::span<const int64_t> shape, DType dtype) {
  if (shape.size() > KEEL_MAX_RANK)
    return Invalid("a shape of ", shape.size(), " dims; at most ", KEEL_MAX_RANK, " are possible");
  int64_t count = 1;
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t d : shape) {
    if (d < 0 || d > kMaxArrayDim)
      return Invalid("shape [", absl::StrJoin(shape, ", "), "]: ", d, " is not in [0, 2^40]");
    if (!empty && (__builtin_mul_overflow(count, d, &count) || count > kMaxBytes / SizeOf(dtype)))
      return Exhausted("shape [", absl::StrJoin(shape, ", "), "] of ", Name(dtype),
                       " needs more than 2^40 bytes, the limit for one tensor");
  }
  return empty ? 0 : count;
}

keel_array* NewResult(DType dtype, std::span<const int64_t> shape, int64_t count) {
  const DTypeInfo& info = Info(dtype);
  keel_array* a = AllocateBlock(keel_bytes(info.code, count));
  if (a) SetType(a, dtype, std::bit_cast<keel_dtype>(info.code), shape, count);
  return a;
}

absl::StatusOr<ArrayRef> NewArray(DType dtype, std::span<const int64_t> shape, bool zeroed) {
  ASSIGN_OR_RETURN(int64_t count, CountOf(shape, dtype));
  uint64_t bytes = BytesOf(dtype, count);
  keel_array* a = NewResult(dtype, shape, count);
  if (!a)
    return Exhausted("no memory for a tensor of ", bytes, " bytes, shape [", absl::StrJoin(shape, ", "), "]");
  if (zeroed) std::memset(a->view.data, 0, bytes);
  return ArrayRef(a);
}

absl::StatusOr<ArrayRef> NewDeviceHeader(DType dtype, std::span<const int64_t> shape,
                                         const DeviceMemory& memory) {
  ASSIGN_OR_RETURN(int64_t count, CountOf(shape, dtype));
  keel_array* a = AllocateBorrowing();
  if (!a) return Exhausted("no memory for an array's header");
  SetType(a, dtype, AbiDType(dtype), shape, count);
  a->type_key = static_cast<uint8_t>(kDeviceKey + static_cast<uint8_t>(dtype));
  a->view.data = memory.data;
  a->view.device = memory.device;
  *a->borrowed() = {{}, memory.release, memory.block, memory.to_host};
  return ArrayRef(a);
}

absl::StatusOr<ArrayRef> OnHost(ArrayRef array) {
  if (!array->device_block()) return array;
  return array->borrowed()->to_host(array.get());
}

int64_t IntegerOf(const keel_array& scalar) {
  if (scalar.dtype == DType::kBool) return *reinterpret_cast<const uint8_t*>(scalar.data()) != 0;
  if (scalar.dtype == DType::kI32) return *reinterpret_cast<const int32_t*>(scalar.data());
  return *reinterpret_cast<const int64_t*>(scalar.data());
}

absl::StatusOr<ArrayRef> NewSymbolic(DType dtype, std::span<const int64_t> shape,
                                     std::unique_ptr<SymbolicValue> value) {
  keel_array* a = AllocateBorrowing();
  if (!a) return Exhausted("no memory for an array's header");
  SetType(a, dtype, AbiDType(dtype), shape, 0);
  a->type_key = static_cast<uint8_t>(kSymbolicKey + static_cast<uint8_t>(dtype));
  a->view.data = nullptr;
  *a->borrowed() = {{}, [](void* p) { delete static_cast<SymbolicValue*>(p); }, value.release(), nullptr};
  return ArrayRef(a);
}

absl::StatusOr<ArrayRef> WrapArray(const keel_tensor& t, ReleaseFn release, void* arg) {
  ASSIGN_OR_RETURN(DType dtype, CheckTensor(t));
  std::span<const int64_t> shape(t.shape, static_cast<size_t>(t.ndim));
  ASSIGN_OR_RETURN(int64_t count, CountOf(shape, dtype));
  if (count > 0 && !t.data) return NoData(count);
  if (count > 0) RETURN_IF_ERROR(CheckReach(t, SizeOf(dtype)));
  if (reinterpret_cast<uintptr_t>(static_cast<char*>(t.data) + t.byte_offset) % SizeOf(dtype))
    return Invalid("data is not aligned to the ", SizeOf(dtype), " bytes of ", Name(dtype),
                   "; copy it instead");
  keel_array* a = AllocateBorrowing();
  if (!a) return Exhausted("no memory for an array's header");
  SetType(a, dtype, t.dtype, shape, count);
  a->view.data = t.data;
  a->view.byte_offset = t.byte_offset;
  a->view.device = t.device;
  Borrowed& borrowed = *a->borrowed();
  if (!IsRowMajor(t)) {
    std::copy_n(t.strides, t.ndim, borrowed.strides);
    a->view.strides = borrowed.strides;
    a->contiguous = false;
  }
  borrowed.release = release;
  borrowed.arg = arg;
  return ArrayRef(a);
}

absl::StatusOr<ArrayRef> CopyArray(const keel_tensor& t) {
  ASSIGN_OR_RETURN(DType dtype, CheckTensor(t));
  ASSIGN_OR_RETURN(ArrayRef copy, NewArray(dtype, {t.shape, static_cast<size_t>(t.ndim)}, false));
  if (copy->count > 0 && !t.data) return NoData(copy->count);
  if (copy->count == 0) return copy;
  RETURN_IF_ERROR(CheckReach(t, SizeOf(dtype)));
  const char* from = static_cast<const char*>(t.data) + t.byte_offset;
  if (IsRowMajor(t))
    std::memcpy(copy->data(), from, copy->bytes());
  else
    CopyStrided(t, SizeOf(dtype), copy->data(), from, 0);
  return copy;
}

}  // namespace keel
