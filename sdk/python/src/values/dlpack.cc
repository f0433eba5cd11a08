// dlpack.cc: capsules of DLPack, both forms. A consumed capsule has a name that begins with "used_".
#include "values/dlpack.h"

#include "base/gil.h"

namespace {

// The two structs of DLPack around the tensor, as far as capsules need them.
struct Legacy {
  keel_tensor tensor;
  void* context;
  void (*deleter)(Legacy*);
};
struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
};
template <class T>
constexpr const char* kName = "dltensor";
template <>
constexpr const char* kName<Versioned> = "dltensor_versioned";

template <class T>
void drop(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName<T>)) return;  // consumed
  auto* managed = static_cast<T*>(PyCapsule_GetPointer(capsule, kName<T>));
  if (managed->deleter) managed->deleter(managed);
}

template <class T, class Managed, class Export>
nanobind::object capsule_of(const keel::Tensor& t, Export exported) {
  Managed* out = nullptr;
  {
    keel_python::WithoutGil others_run;  // the export waits for an array on a device
    keel::call(exported, t.get(), &out);
  }
  PyObject* capsule = PyCapsule_New(out, kName<T>, drop<T>);
  if (!capsule) throw nanobind::python_error();
  return nanobind::steal(capsule);
}

template <class Managed, class Import>
keel::Tensor taken(PyObject* capsule, const char* name, const char* used, Import imported) {
  keel_array* out = nullptr;
  keel::call(imported, keel::detail::here().context(),
             static_cast<Managed*>(PyCapsule_GetPointer(capsule, name)), &out);
  PyCapsule_SetName(capsule, used);
  return keel::Tensor(keel::Array(out));
}

}  // namespace

namespace keel_python {

nb::object to_dlpack(const keel::Tensor& t, bool versioned) {
  if (versioned)
    return capsule_of<Versioned, DLManagedTensorVersioned>(
        t, [](keel_array* array, DLManagedTensorVersioned** out, keel_error** error) {
          return keel_array_to_dlpack(array, out, nullptr, error);
        });
  return capsule_of<Legacy, DLManagedTensor>(
      t, [](keel_array* array, DLManagedTensor** out, keel_error** error) {
        return keel_array_to_dlpack(array, nullptr, out, error);
      });
}

keel::Tensor from_dlpack(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kName<Versioned>))
    return taken<DLManagedTensorVersioned>(
        capsule.ptr(), kName<Versioned>, "used_dltensor_versioned",
        [](keel_context* context, DLManagedTensorVersioned* take, keel_array** out, keel_error** error) {
          return keel_array_from_dlpack(context, take, nullptr, out, error);
        });
  if (PyCapsule_IsValid(capsule.ptr(), kName<Legacy>))
    return taken<DLManagedTensor>(
        capsule.ptr(), kName<Legacy>, "used_dltensor",
        [](keel_context* context, DLManagedTensor* take, keel_array** out, keel_error** error) {
          return keel_array_from_dlpack(context, nullptr, take, out, error);
        });
  throw keel::Error(KEEL_INVALID, "from_dlpack: not an unused DLPack capsule");
}

}  // namespace keel_python
