// tensor_type.cc: the methods of the type keel.Tensor: attributes, reading, printing, the buffer protocol,
// exchange with other libraries.
//
// How to read it: functions in the order of the tables at the end. Operators are in operators.cc, indexing in
// index.cc; functions that need NumPy are in keel/foreign.py, display in notebooks in keel/display.py.
#include "ops/tensor_type.h"

#include <nanobind/stl/string.h>

#include "keel/format.hpp"
#include "keel/ops.hpp"
#include "ops/index.h"
#include "ops/operators.h"
#include "values/dim.h"
#include "values/dlpack.h"
#include "values/dtype.h"
#include "values/foreign.h"
#include "values/literal.h"

namespace keel_python {

namespace {

PyObject* text(const std::string& s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

void destroy(PyObject* self) {
  keel_array_free(array_of(self));
  PyObject_Free(self);
}
PyObject* make(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "tensors are made by keel.array(values, dtype=None)");
  return nullptr;
}
// Replacements of the print functions (keel/compat); NULL: Keel's own.
PyObject *str_by = nullptr, *repr_by = nullptr;

PyObject* plain_str(PyObject* self) {
  keel::Tensor t = tensor_of(self);
  return guarded([&] { return text(reading(t, [&] { return keel::to_string(t); })); });
}
PyObject* repr(PyObject* self) {
  if (repr_by) return PyObject_CallOneArg(repr_by, self);
  keel::Tensor t = tensor_of(self);
  return guarded([&] { return text(reading(t, [&] { return keel::repr(t); })); });
}
PyObject* str(PyObject* self) { return str_by ? PyObject_CallOneArg(str_by, self) : plain_str(self); }
void show_by(nb::handle str, nb::handle repr) {
  PyObject* old[] = {str_by, repr_by};
  str_by = str.is_none() ? nullptr : Py_NewRef(str.ptr());
  repr_by = repr.is_none() ? nullptr : Py_NewRef(repr.ptr());
  for (PyObject* each : old) Py_XDECREF(each);
}

// An access that fails asks keel.elsewhere, which knows the names of other libraries. NumPy asks for many
// that begin with "_".
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) || PyUnicode_ReadChar(name, 0) == '_')
    return found;
  PyErr_Clear();
  return guarded([&]() -> PyObject* {
    nb::module_::import_("keel.elsewhere").attr("of_tensor")(nb::handle(self), nb::handle(name));
    return nullptr;
  });
}

PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(dtype_object(keel::detail::dtype_of_array(array_of(self))));
}
PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] { return shape_of(array_of(self)); });
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).ndim()); }
PyObject* get_size(PyObject* self, void*) {
  return guarded([&] {
    keel::Dim size = 1;
    keel::Tensor t = tensor_of(self);
    for (int64_t d = 0; d < t.ndim(); d++) size = size * t.dim(d);
    return dim_object(size).release().ptr();
  });
}
PyObject* get_device(PyObject* self, void*) {
  return PyUnicode_FromString(keel_array_device(array_of(self)));
}
PyObject* get_symbolic(PyObject* self, void*) { return PyBool_FromLong(keel_array_symbolic(array_of(self))); }
PyObject* get_type(PyObject* self, void*) { return text(tensor_of(self).type()); }
PyObject* get_transposed(PyObject* self, void*) {
  return guarded([&] {
    keel::Tensor t = tensor_of(self);
    return wrap(t.ndim() < 2 ? t : keel::transpose(t));
  });
}

PyObject* to(PyObject* self, PyObject* device) {
  return guarded([&] {
    std::string name = device == Py_None ? "" : nb::cast<std::string>(nb::str(device));
    keel::Tensor t = tensor_of(self);
    return wrap(without_gil([&] { return t.to(name); }));
  });
}
PyObject* astype(PyObject* self, PyObject* dtype) {
  return guarded([&] { return wrap(to_tensor(self, need_dtype(dtype))); });
}
template <class T>
nb::object number(const char* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  if constexpr (std::is_same_v<T, bool>)
    return nb::bool_(v);
  else if constexpr (keel::is_floating<T>)
    return nb::float_(static_cast<double>(v));
  else
    return nb::int_(v);
}
nb::object nested(const keel::Array& rows, const keel::PlainElements& elements, size_t d, int64_t& at) {
  if (d == rows.shape().size()) {
    nb::object out;
    const char* from = static_cast<const char*>(elements.data()) + at++ * keel::dtype_size(elements.dtype());
    keel::visit(elements.dtype(), [&](auto tag) { out = number<typename decltype(tag)::type>(from); });
    return out;
  }
  nb::list out;
  for (int64_t i = 0; i < rows.shape()[d]; i++) out.append(nested(rows, elements, d + 1, at));
  return out;
}
PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    int64_t at = 0;
    const keel::Array rows = rows_of(need_value(tensor_of(self)));
    return nested(rows, keel::PlainElements(rows), 0, at).release().ptr();
  });
}
PyObject* item(PyObject* self, PyObject*) {
  return guarded([&] {
    keel::Tensor t = tensor_of(self);
    keel::Array rows = rows_of(need_value(t));
    keel::Tensor(rows).item<double>();  // throws unless there is exactly one
    nb::object out;
    const keel::PlainElements elements(rows);
    keel::visit(elements.dtype(), [&](auto tag) {
      out = number<typename decltype(tag)::type>(static_cast<const char*>(elements.data()));
    });
    return out.release().ptr();
  });
}

// The function of keel/foreign.py of that name, with the tensor as first argument.
PyObject* foreign(const char* name, PyObject* self, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    need_value(tensor_of(self));
    nb::object f = nb::module_::import_("keel.foreign").attr(name);
    nb::object all = nb::make_tuple(nb::handle(self)) + nb::borrow(args);
    PyObject* out = unless_ended([&] { return PyObject_Call(f.ptr(), all.ptr(), keywords); });
    if (!out) throw nb::python_error();
    return out;
  });
}
PyObject* as_array(PyObject* self, PyObject* args, PyObject* kw) { return foreign("array", self, args, kw); }
PyObject* as_dlpack(PyObject* self, PyObject* args, PyObject* kw) {
  return foreign("dlpack", self, args, kw);
}
PyObject* formatted(PyObject* self, PyObject* spec) {
  if (!PyUnicode_Check(spec) || !PyUnicode_GET_LENGTH(spec)) return plain_str(self);
  auto only = nb::steal(item(self, nullptr));
  return only.is_valid() ? PyObject_Format(only.ptr(), spec) : nullptr;
}
PyObject* numpy(PyObject* self, PyObject*) {
  auto none = nb::make_tuple();
  return foreign("array", self, none.ptr(), nullptr);
}
PyObject* dlpack_device(PyObject* self, PyObject*) {
  keel_tensor t;
  keel_array_tensor(array_of(self), &t);
  return nb::make_tuple(t.device.type, t.device.id).release().ptr();
}
PyObject* reduce(PyObject* self, PyObject*) {
  return foreign("reduce", self, nb::make_tuple().ptr(), nullptr);
}
PyObject* same(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* repr_html(PyObject* self, PyObject*) {
  return guarded([&] {
    return nb::object(nb::module_::import_("keel.display").attr("html")(nb::handle(self))).release().ptr();
  });
}

const char* buffer_format(keel_dt dtype) {
  const keel::DtypeRow* row = keel::find_dtype(dtype);
  if (!row || dtype == KEEL_BF16 || row->kind == 's') return nullptr;  // Python buffers have no format for it
  static constexpr const char* kFormats[] = {"?", "b", "h", "i",     "q", "B", "H",
                                             "I", "Q", "e", nullptr, "f", "d"};
  return kFormats[row - keel::kDtypes];
}
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  keel_tensor t;
  keel_array_tensor(array_of(self), &t);
  const char* format = buffer_format(keel::dtype_pack(t.dtype));
  bool here = !keel_array_symbolic(array_of(self)) && !*keel_array_device(array_of(self));
  if (!here || !format || (flags & PyBUF_WRITABLE)) {
    PyErr_SetString(PyExc_BufferError,
                    "tensors are read-only, and only tensors with values in host memory have a buffer");
    return view->obj = nullptr, -1;
  }
  auto* steps = new Py_ssize_t[KEEL_MAX_RANK];
  Py_ssize_t size = keel::dtype_size(keel::dtype_pack(t.dtype)), all = size;
  for (int32_t d = t.ndim - 1; d >= 0; all *= t.shape[d--]) steps[d] = t.strides ? t.strides[d] * size : all;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  *view = {static_cast<char*>(t.data) + t.byte_offset,
           Py_NewRef(self),
           all,
           size,
           1,
           t.ndim,
           const_cast<char*>(format),
           reinterpret_cast<Py_ssize_t*>(t.shape),
           steps,
           nullptr,
           steps};
  return 0;
}
void release_buffer(PyObject*, Py_buffer* view) { delete[] static_cast<Py_ssize_t*>(view->internal); }

Py_hash_t hash(PyObject* self) { return _Py_HashPointer(self); }

PyGetSetDef facts[] = {
    {"dtype", get_dtype, nullptr, "keel.DType of the elements", nullptr},
    {"shape", get_shape, nullptr, "Sizes: ints, or keel.Dim for unknown sizes of a trace", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dims", nullptr},
    {"size", get_size, nullptr, "Number of elements", nullptr},
    {"device", get_device, nullptr, "'cuda:0'; '' for host memory", nullptr},
    {"symbolic", get_symbolic, nullptr, "Whether it is a value of a trace, without elements", nullptr},
    {"type", get_type, nullptr, "'f32[2, 3]'", nullptr},
    {"T", get_transposed, nullptr, "The transpose: the dims in reverse order", nullptr},
    {}};

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef tensor_methods[] = {
    {"to", to, METH_O,
     "to($self, device, /)\n--\n\nA copy on a device; '' or None: in host memory. The same tensor if it is "
     "already there."},
    {"astype", astype, METH_O, "astype($self, dtype, /)\n--\n\nCast to another dtype, as keel.cast."},
    {"item", item, METH_NOARGS,
     "item($self, /)\n--\n\nThe only element, as a Python number. Raises InvalidError if there are more."},
    {"tolist", tolist, METH_NOARGS, "tolist($self, /)\n--\n\nNested lists of Python numbers."},
    {"numpy", numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nA numpy.ndarray, read-only; without a copy if it is in host memory."},
    {"__array__", with_keywords(as_array), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack__", with_keywords(as_dlpack), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
    {"__format__", formatted, METH_O, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
    {"_repr_html_", repr_html, METH_NOARGS, nullptr},  // for notebooks
    {}};
PySequenceMethods sequence{};
PyMappingMethods mapping{};
PyBufferProcs buffer{get_buffer, release_buffer};

void fill_type() {
  sequence.sq_length = mapping.mp_length = tensor_length;
  sequence.sq_item = tensor_row;
  mapping.mp_subscript = tensor_index;
  tensor_type.tp_name = "keel.Tensor";
  tensor_type.tp_doc =
      "An immutable array of numbers, or, while a function is traced, a symbolic value without numbers.";
  tensor_type.tp_basicsize = sizeof(TensorObject);
  tensor_type.tp_flags = Py_TPFLAGS_DEFAULT;
  tensor_type.tp_new = make;
  tensor_type.tp_dealloc = destroy;
  tensor_type.tp_repr = repr;
  tensor_type.tp_str = str;
  tensor_type.tp_getattro = get_attribute;
  tensor_type.tp_hash = hash;  // == is elementwise; as dict keys tensors compare by identity
  tensor_type.tp_richcompare = tensor_compare;
  tensor_type.tp_iter = tensor_rows;
  tensor_type.tp_as_number = &tensor_number;
  tensor_type.tp_as_sequence = &sequence;
  tensor_type.tp_as_mapping = &mapping;
  tensor_type.tp_as_buffer = &buffer;
  tensor_type.tp_getset = facts;
  tensor_type.tp_methods = tensor_methods;
}

}  // namespace

void install_tensor_type(nb::module_& m) {
  fill_type();
  if (PyType_Ready(&tensor_type) < 0) throw nb::python_error();
  nb::object priority =
      nb::float_(1000.0);  // makes ndarray + tensor a tensor; np.add(tensor, x) is an ndarray
  PyDict_SetItemString(tensor_type.tp_dict, "__array_priority__", priority.ptr());
  m.attr("Tensor") = nb::borrow(reinterpret_cast<PyObject*>(&tensor_type));
  auto dtype_or_none = [](nb::handle d) { return d.is_none() ? keel_dt{0} : need_dtype(d); };
  m.def(
      "array", [=](nb::handle values, nb::handle dtype) { return to_tensor(values, dtype_or_none(dtype)); },
      nb::arg("values").none(), nb::arg("dtype") = nb::none(),
      "A tensor of a number, nested lists of numbers, or a copy of an array of another library.\n\n"
      "Default dtypes: i32 for integers (i64 if one does not fit), f32 for floats, bool for True and\n"
      "False; arrays keep theirs. Raises InvalidError for rows of different lengths.");
  m.def("array", [](nb::args args, nb::kwargs keywords) {
    refuse_as_python("array", {"values", "dtype"}, args, keywords);
  });
  m.def(
      "asarray",
      [](nb::handle value) {
        if (is_tensor(value.ptr())) return tensor_of(value.ptr());
        keel::Tensor shared = from_foreign(value, false);
        return shared.empty() ? to_tensor(value) : shared;
      },
      nb::arg("value").none(),
      "As array(), but shares the memory of an aligned, contiguous array, which must not be written "
      "afterwards.");
  m.def("asarray",
        [](nb::args args, nb::kwargs keywords) { refuse_as_python("asarray", {"value"}, args, keywords); });
  m.def("show_by", show_by, nb::arg().none(), nb::arg().none());
  m.def("take_dlpack", from_dlpack);
  m.def("give_dlpack", to_dlpack);
  m.def("host_zeros", [](nb::handle shape, nb::handle dtype) {
    return keel::zeros(need_ints(shape), need_dtype(dtype), kNowhere);
  });
  m.def("bits_as", [](const keel::Tensor& t, nb::handle dtype) { return bits_as(t, need_dtype(dtype)); });
  m.def("unpacked", [](const keel::Tensor& t) { return unpacked(t); });
  m.def("packed", [](const keel::Tensor& t, nb::handle dtype) { return packed(t, need_dtype(dtype)); });
  m.def("add_method", [](nb::str name, nb::callable method) {  // not possible in Python: the type is static
    if (PyDict_SetItem(tensor_type.tp_dict, name.ptr(), method.ptr()) != 0) throw nb::python_error();
    PyType_Modified(&tensor_type);
  });
  m.def("host", [](const keel::Tensor& t) { return keel::Tensor(rows_of(t)); });
  m.def(
      "same",
      [](nb::handle a, nb::handle b) {
        keel::Tensor x = to_tensor(a), y = to_tensor(b);
        return reading(on_device(x) ? x : y, [&] { return keel::same(x, y); });
      },
      "Equal dtype, shape and bytes: NaN equals NaN, 0.0 differs from -0.0.");
}

}  // namespace keel_python
