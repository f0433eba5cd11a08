// dlpack.cc: conversion to and from DLPack. Consumers of the unversioned struct may require strides, so both
// structs always have them.
#include "kernel/language/values/dlpack.h"

#include <new>

namespace keel {
namespace {

template <typename Managed>
void CallDeleter(void* arg) {
  auto* managed = static_cast<Managed*>(arg);
  if (managed->deleter)  // null: nothing to free (DLPack)
    managed->deleter(managed);
}

template <typename Managed>
struct Export {  // freed by the consumer's deleter
  Managed managed{};
  ArrayRef array;
  int64_t strides[KEEL_MAX_RANK];
};

template <typename Managed>
Managed* MakeExport(keel_array* array) {
  auto* e = new (std::nothrow) Export<Managed>;
  if (!e) return nullptr;
  e->array = ArrayRef::Share(array);
  e->managed.dl_tensor = array->view;
  int64_t step = 1;
  for (int32_t d = array->view.ndim; d-- > 0; step *= array->dims[d])
    e->strides[d] = array->contiguous ? step : array->view.strides[d];
  e->managed.dl_tensor.strides = e->strides;
  e->managed.manager_ctx = e;
  e->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->manager_ctx); };
  return &e->managed;
}

}  // namespace

absl::StatusOr<ArrayRef> FromDlpack(DLManagedTensor* take, WrapFn wrap) {
  return wrap(take->dl_tensor, CallDeleter<DLManagedTensor>, take);
}

absl::StatusOr<ArrayRef> FromDlpack(DLManagedTensorVersioned* take, WrapFn wrap) {
  if (take->major != 1)
    return Invalid("DLPack version ", take->major, ".", take->minor, "; Keel reads version 1");
  if (take->flags & kDlpackPadded && take->dl_tensor.dtype.bits < 8)
    return Unimplemented("the tensor has one element of ", take->dl_tensor.dtype.bits,
                         " bits in each byte; Keel reads packed elements");
  return wrap(take->dl_tensor, CallDeleter<DLManagedTensorVersioned>, take);
}

DLManagedTensor* ToDlpackLegacy(keel_array* array) { return MakeExport<DLManagedTensor>(array); }

DLManagedTensorVersioned* ToDlpack(keel_array* array) {
  auto* managed = MakeExport<DLManagedTensorVersioned>(array);
  if (managed) managed->major = 1;
  return managed;
}

}  // namespace keel
