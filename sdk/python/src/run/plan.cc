// plan.cc: the Python type keel.Plan: a call costs little more than the run.
//
// How to read it: run() is a call. The type uses the CPython API, since nanobind's types have no vectorcall.
#include "run/plan.h"

#include <new>

#include "run/brief.h"
#include "values/literal.h"

namespace keel_python {

namespace {

struct PlanObject {
  PyObject_HEAD;
  vectorcallfunc call;
  keel::Plan plan;
  uint32_t results;
  Brief brief;
};
PlanObject& plan_of(PyObject* self) { return *reinterpret_cast<PlanObject*>(self); }

void run_arrays(PlanObject& p, std::span<keel_array* const> in, keel_array** out) {
  auto once = [&] {
    keel::call(keel_plan_run, p.plan.get(), in.data(), static_cast<uint32_t>(in.size()), out, p.results);
  };
  int64_t elements = 0;
  for (const keel_array* array : in) elements += elements_of(array);
  if (p.brief.expected(elements)) return once();
  p.brief.measured(elements, [&] { without_gil(once); });
}

/// plan(x, y): tensors (or convertible objects) in order; returns one result alone, several as a tuple.
PyObject* run(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  return guarded([&]() -> PyObject* {
    PlanObject& p = plan_of(self);
    if (names && PyTuple_GET_SIZE(names)) {
      PyErr_SetString(PyExc_TypeError, "a plan takes positional inputs only");
      throw nb::python_error();
    }
    constexpr size_t kFew = 16;
    auto n = static_cast<size_t>(PyVectorcall_NARGS(flags));
    std::vector<keel_array*> many(n + p.results > kFew ? n + p.results : 0);
    keel_array *few[kFew], **in = many.empty() ? few : many.data(), **out = in + n;
    std::vector<keel::Tensor> kept;
    for (size_t k = 0; k < n; k++)
      in[k] = is_tensor(args[k]) ? array_of(args[k]) : kept.emplace_back(to_tensor(args[k])).get();
    run_arrays(p, {in, n}, out);
    if (p.results == 1) return wrap(out[0]);
    return tuple_of({out, out + p.results}).release().ptr();
  });
}

void destroy(PyObject* self) {
  plan_of(self).plan.~Plan();
  PyObject_Free(self);
}
PyObject* get_inputs(PyObject* self, void*) { return PyLong_FromLong(plan_of(self).plan.inputs()); }
PyObject* get_outputs(PyObject* self, void*) { return PyLong_FromLong(plan_of(self).results); }
PyObject* report(PyObject* self, PyObject*) {
  return guarded([&] { return nb::str(plan_of(self).plan.report().c_str()).release().ptr(); });
}
PyObject* make(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "plans are made by Session.prepare()");
  return nullptr;
}

PyGetSetDef facts[] = {{"inputs", get_inputs, nullptr, "Number of inputs of a call", nullptr},
                       {"outputs", get_outputs, nullptr, "Number of results", nullptr},
                       {}};
PyMethodDef methods[] = {{"_report", report, METH_NOARGS, nullptr}, {}};
PyTypeObject plan_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

void fill_type() {
  plan_type.tp_name = "keel.Plan";
  plan_type.tp_doc =
      "A prepared run of a session, by Session.prepare(). plan(x, y) takes positional inputs: tensors or "
      "convertible "
      "objects; returns the only result or a tuple. Any number of threads may call it concurrently.";
  plan_type.tp_basicsize = sizeof(PlanObject);
  plan_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  plan_type.tp_vectorcall_offset = offsetof(PlanObject, call);
  plan_type.tp_call = PyVectorcall_Call;
  plan_type.tp_new = make;
  plan_type.tp_dealloc = destroy;
  plan_type.tp_getset = facts;
  plan_type.tp_methods = methods;
}

}  // namespace

nb::object plan_object(keel::Plan plan, bool may_be_brief) {
  auto* self = static_cast<PlanObject*>(PyObject_Malloc(sizeof(PlanObject)));
  if (!self) throw std::bad_alloc();
  uint32_t results = plan.outputs();
  new (self) PlanObject{{}, run, std::move(plan), results, {}};
  if (!may_be_brief) self->brief.never();
  return nb::steal(PyObject_Init(reinterpret_cast<PyObject*>(self), &plan_type));
}

void install_plan(nb::module_& m) {
  fill_type();
  if (PyType_Ready(&plan_type) < 0) throw nb::python_error();
  m.attr("Plan") = nb::borrow(reinterpret_cast<PyObject*>(&plan_type));
}

}  // namespace keel_python
