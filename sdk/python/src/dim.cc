// dim.cc: keel.Dim, a size that has no number while a function is traced; it takes + - * // % with others.
#include "dim.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

namespace keel_python {

keel::Dim need_dim(nb::handle value) {
  if (nb::isinstance<keel::Dim>(value)) return nb::cast<const keel::Dim&>(value);
  if (!PyIndex_Check(value.ptr())) {
    PyErr_Format(PyExc_TypeError, "a size must be an int or a keel.Dim, not %s",
                 Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
  }
  auto number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number) throw nb::python_error();
  int overflow = 0;
  int64_t size = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow) throw keel::Error(KEEL_RANGE, std::string(nb::str(number).c_str()) + " does not fit in i64");
  return keel::Dim(size);
}

keel::Ints need_ints(nb::handle value) {
  if (PyIndex_Check(value.ptr()) || nb::isinstance<keel::Dim>(value)) {
    keel::Dim one = need_dim(value);
    return one.symbolic() ? keel::Ints(one) : keel::Ints(one.number());
  }
  std::vector<keel::Dim> sizes;
  for (nb::handle each : value) sizes.push_back(need_dim(each));
  return keel::Ints(std::move(sizes));
}

nb::object dim_object(const keel::Dim& dim) {
  if (dim.symbolic()) return nb::cast(dim);
  return nb::int_(dim.number());
}

PyObject* shape_of(keel_array* array) {
  keel_tensor t;
  keel_array_tensor(array, &t);
  auto out = nb::steal(PyTuple_New(t.ndim));
  for (int32_t d = 0; out && d < t.ndim; d++) {
    nb::object size;
    if (t.shape[d] >= 0) {
      size = nb::int_(t.shape[d]);
    } else {
      keel_text* text = nullptr;
      keel::call(keel_array_dim, array, static_cast<int64_t>(d), &text);
      size = dim_object(keel::Dim::parse(keel::take_text(text)));
    }
    PyTuple_SET_ITEM(out.ptr(), d, size.release().ptr());
  }
  return out.release().ptr();
}

void install_dim(nb::module_& m) {
  using keel::Dim;
  auto both = [](Dim (*op)(const Dim&, const Dim&)) {
    return [op](const Dim& a, nb::handle b) { return dim_object(op(a, need_dim(b))); };
  };
  auto turned = [](Dim (*op)(const Dim&, const Dim&)) {
    return [op](const Dim& a, nb::handle b) { return dim_object(op(need_dim(b), a)); };
  };
  Dim (*add)(const Dim&, const Dim&) = [](const Dim& a, const Dim& b) { return a + b; };
  Dim (*sub)(const Dim&, const Dim&) = [](const Dim& a, const Dim& b) { return a - b; };
  Dim (*mul)(const Dim&, const Dim&) = [](const Dim& a, const Dim& b) { return a * b; };
  Dim (*div)(const Dim&, const Dim&) = [](const Dim& a, const Dim& b) { return a / b; };
  Dim (*mod)(const Dim&, const Dim&) = [](const Dim& a, const Dim& b) { return a % b; };
  nb::class_<Dim>(m, "Dim", "A size of a trace, as in x.shape; ops take it wherever they take a size.")
      .def("__add__", both(add))
      .def("__radd__", turned(add))
      .def("__sub__", both(sub))
      .def("__rsub__", turned(sub))
      .def("__mul__", both(mul))
      .def("__rmul__", turned(mul))
      .def("__floordiv__", both(div))
      .def("__rfloordiv__", turned(div))
      .def("__mod__", both(mod))
      .def("__rmod__", turned(mod))
      .def("__index__", [](const Dim& d) { return d.number(); })
      .def("__eq__",
           [](const Dim& a, nb::handle b) {
             bool size = PyIndex_Check(b.ptr()) || nb::isinstance<Dim>(b);
             return size && need_dim(b).text() == a.text();
           })
      .def("__hash__", [](const Dim& d) { return std::hash<std::string>()(d.text()); })
      .def("__str__", &Dim::text)
      .def("__repr__", &Dim::text);
  m.def("dim_by_name", [](const std::string& name) { return dim_object(keel::dim(name)); });
}

}  // namespace keel_python
