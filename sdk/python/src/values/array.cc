// array.cc: the objects of the type keel.Tensor. Its methods are in ops/tensor_type.cc.
#include "values/array.h"

namespace keel_python {

PyTypeObject tensor_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* wrap(keel_array* take) noexcept {
  auto* self = static_cast<TensorObject*>(PyObject_Malloc(sizeof(TensorObject)));
  if (!self) {
    keel_array_free(take);
    return PyErr_NoMemory();
  }
  self->array = take;
  return PyObject_Init(reinterpret_cast<PyObject*>(self), &tensor_type);
}

std::vector<keel_array*> raw(const std::vector<keel::Tensor>& all) {
  std::vector<keel_array*> out;
  for (const keel::Tensor& t : all) out.push_back(t.get());
  return out;
}
std::vector<keel::Tensor> tensors(std::vector<keel::Array> arrays) {
  std::vector<keel::Tensor> out;
  for (keel::Array& a : arrays) out.emplace_back(std::move(a));
  return out;
}
nb::tuple tuple_of(const std::vector<keel_array*>& made) {
  nb::list out;
  for (keel::Array& a : keel::take_arrays(made)) out.append(object_of(keel::Tensor(std::move(a))));
  return nb::tuple(out);
}

}  // namespace keel_python
