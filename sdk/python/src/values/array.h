// array.h: the Python type keel.Tensor, around the C++ SDK's keel::Tensor. Its methods are in
// ops/tensor_type.cc.
//
// How to read it: the type uses the CPython API, not nanobind, since each op creates and frees one; the
// type_caster at the end converts for nanobind's functions.
#ifndef KEEL_PYTHON_ARRAY_H
#define KEEL_PYTHON_ARRAY_H
#include "base/errors.h"
#include "base/gil.h"
#include "keel/tensor.hpp"

namespace keel_python {

struct TensorObject {
  PyObject_HEAD keel_array* array;  // one reference
};
extern PyTypeObject tensor_type;

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == &tensor_type; }
inline keel_array* array_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->array; }
inline keel::Tensor tensor_of(PyObject* o) {
  return keel::Tensor(keel::Array(keel_array_retain(array_of(o))));
}
inline int64_t elements_of(const keel_array* array) {
  keel_tensor view;
  keel_array_tensor(array, &view);
  int64_t size = 1;
  for (int32_t d = 0; d < view.ndim; d++) size *= view.shape[d];
  return size;
}
/// Whether a read has to wait for a device and copy.
inline bool on_device(const keel::Tensor& t) { return t.get() && *keel_array_device(t.get()); }
/// Runs `read`, which reads `t` and touches no Python objects. Releases the GIL while it waits for a device.
template <class F>
auto reading(const keel::Tensor& t, F&& read) {
  return on_device(t) ? without_gil(read) : read();
}
inline keel::Array rows_of(const keel::Tensor& t) {
  return reading(t, [&] { return t.rows(); });
}
/// Takes over one reference; returns a new Python object, or NULL with an exception set.
PyObject* wrap(keel_array* take) noexcept;
inline PyObject* wrap(const keel::Tensor& t) noexcept { return wrap(keel_array_retain(t.get())); }
inline nb::object object_of(const keel::Tensor& t) {
  PyObject* made = wrap(t);
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

std::vector<keel_array*> raw(const std::vector<keel::Tensor>& all);  // borrowed
std::vector<keel::Tensor> tensors(std::vector<keel::Array> arrays);
/// Results of libkeel as a tuple; takes over one reference of each.
nb::tuple tuple_of(const std::vector<keel_array*>& made);

}  // namespace keel_python

namespace nanobind::detail {
template <>
struct type_caster<keel::Tensor> {
  NB_TYPE_CASTER(keel::Tensor, const_name("keel.Tensor"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (!keel_python::is_tensor(src.ptr())) return false;
    value = keel_python::tensor_of(src.ptr());
    return true;
  }
  static handle from_cpp(const keel::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return t.empty() ? none().release() : handle(keel_python::wrap(t));
  }
};
}  // namespace nanobind::detail
#endif
