
#include "kernel/language/graph/constant.h"

#include <cstdlib>
#include <cstring>

#include "abi/mutex.hpp"
#include "kernel/base/align.h"
#include "kernel/language/graph/graph.h"
#include "kernel/language/values/blocks.h"

namespace keel {
namespace {

// Of the copies of all constants.
Mutex& Copying() {
  static Mutex& mutex = *new Mutex(Mutex::kLong);
  return mutex;
}

}  // namespace

std::shared_ptr<const void> Misaligned::Copy(bool mapped) {
  std::lock_guard lock(Copying());
  if (!kept_) kept_ = copy_.lock();
  if (kept_) return kept_;
  constexpr uint64_t kAlign = 64;
  void* copy = AllocateLarge(kAlign, RoundUp(size_, kAlign));
  if (!copy) return nullptr;
  std::memcpy(copy, bytes_, size_);
  if (mapped) DropPages(bytes_, size_);
  kept_ = std::shared_ptr<const void>(copy, std::free);
  copy_ = kept_;
  return kept_;
}

void Misaligned::Drop() {
  std::lock_guard lock(Copying());
  kept_ = nullptr;
}

TensorType TypeOf(const keel_array* a) { return {a->dtype, Dims(a->dims, a->dims + a->view.ndim)}; }

Constant ConstantOf(std::string_view name, ArrayRef array) {
  Constant c;
  c.name = std::string(name);
  c.type = TypeOf(array.get());
  c.data = array->data();
  c.bytes = array->bytes();
  c.owner = std::make_shared<ArrayRef>(std::move(array));
  if (reinterpret_cast<uintptr_t>(c.data) % SizeOf(c.type.dtype) != 0)
    c.misaligned = std::make_shared<Misaligned>(c.data, c.bytes);
  return c;
}

Constant ScalarOf(DType dtype, const void* element) {
  auto bytes = std::make_shared<uint64_t>(0);
  std::memcpy(bytes.get(), element, SizeOf(dtype));
  Constant c;
  c.type.dtype = dtype;
  c.bytes = SizeOf(dtype);
  c.data = bytes.get();
  c.owner = std::move(bytes);
  return c;
}

AlignedData DataOf(const Constant& c) {
  if (!c.misaligned) return {c.data, nullptr};
  auto copy = c.misaligned->Copy(c.mapped);
  return {copy.get(), copy};
}

Constant Aligned(Constant c) {
  if (AlignedData aligned = DataOf(c); aligned.holder) {
    c.data = aligned.data;
    c.owner = std::move(aligned.holder);
    c.mapped = false;
    c.misaligned = nullptr;
  }
  return c;
}

keel_tensor ViewOf(const Constant& c, const TensorType& type) {
  keel_tensor t{};
  t.data = const_cast<void*>(c.data);
  t.device = {1, 0};
  t.ndim = static_cast<int32_t>(type.dims.size());
  t.dtype = AbiDType(type.dtype);
  t.shape = const_cast<int64_t*>(type.dims.data());
  return t;
}

absl::StatusOr<ArrayRef> ArrayOf(const Constant& constant) {
  const Constant c = Aligned(constant);
  auto* owner = new std::shared_ptr<const void>(c.owner);
  auto drop = [](void* p) { delete static_cast<std::shared_ptr<const void>*>(p); };
  absl::StatusOr<ArrayRef> array = WrapArray(ViewOf(c, c.type), drop, owner);
  if (!array.ok()) drop(owner);
  return array;
}

}  // namespace keel
