// variable.cc: keel.Variable, the C++ SDK's Variable as a Python type. keel/variable.py adds its operators.
#include "values/variable.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/line.h"
#include "keel/scope.hpp"
#include "values/dtype.h"
#include "values/literal.h"

namespace keel_python {

namespace {

using keel::Variable;

Variable make(nb::handle initial, const std::string& name, bool trainable, nb::handle dtype) {
  keel::Tensor value = to_tensor(initial, dtype.is_none() ? 0 : need_dtype(dtype));
  return Variable(value, {.name = name, .trainable = trainable}, {});
}

template <void (Variable::*write)(const keel::Operand&) const>
void assign(const Variable& v, nb::handle value) {
  keel::Operand operand = need_value(value, "assign", "value");
  note_line();
  try {
    without_gil([&] { (v.*write)(operand); });
  } catch (const keel::Error& e) {
    if (e.code() != KEEL_INVALID) throw;
    bool same = operand.weak() ? has_place(operand.kind(), v.dtype())
                               : keel::detail::dtype_of_array(operand.get()) == v.dtype();
    throw FaultyCall(e, same ? Fault::kShape : Fault::kDtype);
  }
}

}  // namespace

void install_variable(nb::module_& m) {
  nb::class_<Variable>(
      m, "Variable",
      "State that outlives runs, shared by eager code, functions and the graphs of modules. As an operand "
      "it\n"
      "is its value at this point of the program: w * x reads it, w.assign_sub(d) writes it. Thread-safe.")
      .def(
          "__init__",
          [](Variable* self, nb::handle initial, nb::handle name, nb::handle trainable, nb::handle dtype) {
            std::string text = need_text(name, "the name of a variable");
            bool on = need_flag(trainable, "trainable, of a variable,");
            new (self) Variable(make(initial, text, on, dtype));
          },
          nb::arg("initial").none(), nb::arg("name").none() = "", nb::arg("trainable").none() = true,
          nb::arg("dtype") = nb::none(),
          "A new variable with the dtype and shape of `initial`. In a traced function: created in the first "
          "trace only,\n"
          "from constants and shapes. trainable: tapes watch it when it is read.")
      .def("__init__",
           [](Variable*, nb::args args, nb::kwargs keywords) {
             refuse_call("Variable(initial, name='', trainable=True, dtype=None)", args, keywords);
           })
      .def_prop_ro("name", &Variable::name)
      .def_prop_ro("trainable", &Variable::trainable)
      .def_prop_ro("dtype", [](const Variable& v) { return nb::borrow(dtype_object(v.dtype())); })
      .def_prop_ro("shape", [](const Variable& v) { return nb::tuple(nb::cast(v.shape())); })
      .def_prop_ro("ndim", [](const Variable& v) { return v.shape().size(); })
      .def_prop_ro("id", &Variable::id)
      .def_prop_ro("device", &Variable::device)
      .def(
          "to",
          [](const Variable& v, nb::handle device) {
            std::string name = device.is_none() ? "" : nb::cast<std::string>(nb::str(device));
            without_gil([&] { v.to(name); });
          },
          nb::arg("device").none(), "Moves the value to a device, at once; '' or None: to host memory.")
      .def(
          "value",
          [](const Variable& v) {
            note_line();
            return v.value();
          },
          "The value at this point of the program.")
      .def("assign", assign<&Variable::assign>, nb::arg("value").none())
      .def("assign_add", assign<&Variable::assign_add>, nb::arg("value").none())
      .def("assign_sub", assign<&Variable::assign_sub>, nb::arg("value").none());
  // Take effect immediately, also during a trace.
  m.def("new_variable",
        [](const keel::Tensor& initial) { return Variable(keel::default_context(), initial.array()); });
  m.def("assign_now", [](const Variable& v, const keel::Tensor& value) { v.assign(value.array()); });
}

}  // namespace keel_python
