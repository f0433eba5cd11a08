
#include "kernel/language/graph/constant.h"

#include <cstring>

namespace keel {

TensorType TypeOf(const keel_array* a) { return {a->dtype, Dims(a->dims, a->dims + a->view.ndim)}; }

Constant ConstantOf(std::string_view name, ArrayRef array) {
  Constant c;
  c.name = std::string(name);
  c.type = TypeOf(array.get());
  c.data = array->data();
  c.bytes = array->bytes();
  c.owner = std::make_shared<ArrayRef>(std::move(array));
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

keel_tensor ViewOf(const Constant& c, const TensorType& type) {
  keel_tensor t{};
  t.data = const_cast<void*>(c.data);
  t.device = {1, 0};
  t.ndim = static_cast<int32_t>(type.dims.size());
  t.dtype = AbiDType(type.dtype);
  t.shape = const_cast<int64_t*>(type.dims.data());
  return t;
}

absl::StatusOr<ArrayRef> ArrayOf(const Constant& c) {
  auto* owner = new std::shared_ptr<const void>(c.owner);
  auto drop = [](void* p) { delete static_cast<std::shared_ptr<const void>*>(p); };
  absl::StatusOr<ArrayRef> array = WrapArray(ViewOf(c, c.type), drop, owner);
  if (!array.ok()) drop(owner);
  return array;
}

}  // namespace keel
