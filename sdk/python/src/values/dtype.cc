// dtype.cc: element types as Python objects: one per row of the C++ SDK's table.
#include "values/dtype.h"

#include <nanobind/stl/string.h>

#include <array>

#include "values/literal.h"

namespace keel_python {

namespace {

struct DType {
  const keel::DtypeRow* row;
};
std::array<PyObject*, std::size(keel::kDtypes)> objects;

std::string name_of(const DType& t) { return std::string(t.row->name); }

std::string attribute_name(const keel::DtypeRow& row) {  // keel.f32, keel.bool_
  return std::string(row.name) + (row.kind == 'b' ? "_" : "");
}
// Of storage dtypes: the name in the package ml_dtypes.
std::string storage_name(const keel::DtypeRow& row) {
  if (row.code == KEEL_F8E8M0) return "float8_e8m0fnu";
  if (row.code == KEEL_F4E2M1) return "float4_e2m1fn";
  const std::string name(row.name);
  if (name[0] == 'f') return "float8_" + name.substr(2);
  return (name[0] == 'i' ? "int" : "uint") + name.substr(1);
}
std::string numpy_name(const keel::DtypeRow& row) {
  if (row.kind == 's') return storage_name(row);
  if (row.code == KEEL_BF16) return "bfloat16";
  if (row.kind == 'b') return "bool";
  return (row.kind == 'i' ? "int" : row.kind == 'u' ? "uint" : "float") + std::to_string(row.size * 8);
}

const keel::DtypeRow* find(const std::string& name) {
  for (const keel::DtypeRow& row : keel::kDtypes)
    if (row.name == name || numpy_name(row) == name) return &row;
  return nullptr;
}

std::string text_of(nb::handle value) {
  for (const char* from : {"name", "__name__"})  // numpy.dtype, numpy.float32
    if (nb::object text = nb::getattr(value, from, nb::none()); nb::isinstance<nb::str>(text))
      return nb::cast<std::string>(text);
  return nb::cast<std::string>(nb::str(value));
}

}  // namespace

keel_dt need_dtype(nb::handle value) {
  if (nb::isinstance<DType>(value)) return nb::cast<const DType&>(value).row->code;
  std::string text = text_of(value), all;
  if (const keel::DtypeRow* row = find(text)) return row->code;
  if (PyLong_Check(value.ptr()))
    throw FaultyCall(
        keel::Error(KEEL_INVALID, "a dtype is an object such as keel.f32 or \"f32\", not the number " + text,
                    "a shape is one argument, as in keel.zeros((2, 3))"),
        Fault::kDtype);
  for (const keel::DtypeRow& row : keel::kDtypes) all += (all.empty() ? "" : ", ") + std::string(row.name);
  throw FaultyCall(keel::Error(KEEL_INVALID, "no dtype is called '" + text + "'", "the dtypes are " + all),
                   Fault::kDtype);
}

PyObject* dtype_object(keel_dt dtype) {
  const keel::DtypeRow* row = keel::find_dtype(dtype);
  return row ? objects[static_cast<size_t>(row - keel::kDtypes)] : Py_None;
}

void install_dtype(nb::module_& m) {
  nb::class_<DType>(m, "DType",
                    "An element type: keel.f32. keel.f32([1, 2]) makes a tensor; keel.f32['b', 784] is a\n"
                    "type with dims for signatures. Equal to its name and to the corresponding NumPy dtype.")
      .def_prop_ro("name", name_of, "'f32'")
      .def_prop_ro(
          "size", [](const DType& t) { return t.row->size; }, "Bytes of one element; of a packed one: 1.")
      .def_prop_ro(
          "kind", [](const DType& t) { return std::string(1, t.row->kind); },
          "'b' bool, 'i' signed, 'u' unsigned, 'f' floating, 's' storage: only astype() converts it")
      .def_prop_ro(
          "numpy_name", [](const DType& t) { return numpy_name(*t.row); }, "'float32'")
      .def("__repr__", [](const DType& t) { return "keel." + name_of(t); })
      .def("__str__", name_of)
      .def("__hash__", [](const DType& t) { return t.row->code; })
      .def(
          "__eq__",
          [](const DType& t, nb::handle other) {
            if (nb::isinstance<DType>(other)) return nb::cast<const DType&>(other).row == t.row;
            return !other.is_none() && find(text_of(other)) == t.row;
          },
          nb::arg("other").none())
      .def("__reduce__", [](const DType& t) { return attribute_name(*t.row); })
      .def(
          "__call__", [](const DType& t, nb::handle value) { return to_tensor(value, t.row->code); },
          nb::arg("value"),
          "A tensor of this dtype, from numbers, nested lists, or another tensor, which is cast.")
      .def("__getitem__", [](const DType& t, nb::handle dims) {
        return nb::module_::import_("keel.signature")
            .attr("Spec")(nb::handle(dtype_object(t.row->code)), dims);
      });
  for (size_t i = 0; i < objects.size(); i++) {
    nb::object made = nb::cast(DType{&keel::kDtypes[i]});
    m.attr(attribute_name(keel::kDtypes[i]).c_str()) = made;
    objects[i] = made.release().ptr();  // never freed
  }
}

}  // namespace keel_python
