// session.cc: modules (files of graphs), sessions and plans, on the C++ SDK's; keel/session.py gives them to
// programs.
#include "session.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "context.h"
#include "dtype.h"
#include "keel/save.hpp"
#include "keel/session.hpp"
#include "literal.h"

namespace keel_python {

namespace {

using Names = std::vector<std::string>;

const keel::Context& context() { return keel::default_context(); }

keel::Module load(const std::string& path) {
  return without_gil([&] { return keel::Module::load(context(), path); });
}
keel::Module import_file(const std::string& path, const nb::dict& options, const nb::dict& fixed) {
  keel::Options o = options_of(options);
  Names names;
  std::vector<keel::Array> arrays;
  for (auto [name, value] : fixed) {
    names.push_back(nb::cast<std::string>(name));
    arrays.push_back(to_tensor(value).array());
  }
  return without_gil([&] { return keel::Module::import_file(context(), path, o, names, arrays); });
}

/// Of an entry ("": the only one): [(name, dtype, shape with -1 where it is not known)].
nb::list ports(keel::Module& module, const std::string& entry, bool results) {
  keel::Graph graph = module.graph_of(entry);
  nb::list out;
  for (const auto& [name, value] : graph.ports(results)) {
    keel_dt dtype = 0;
    int64_t shape[KEEL_MAX_RANK];
    int32_t ndim = 0;
    keel::call(keel_graph_type, graph.get(), value, &dtype, shape, &ndim);
    nb::list dims;
    for (int32_t d = 0; d < ndim; d++) dims.append(shape[d]);
    out.append(nb::make_tuple(name, nb::handle(dtype_object(dtype)), nb::tuple(dims)));
  }
  return out;
}

std::vector<const char*> c_strings(const Names& names) {
  std::vector<const char*> out;
  for (const std::string& name : names) out.push_back(name.c_str());
  return out;
}
nb::tuple tuple_of(const std::vector<keel_array*>& made) {
  nb::list out;
  for (keel::Array& a : keel::take_arrays(made)) out.append(object_of(keel::Tensor(std::move(a))));
  return nb::tuple(out);
}

nb::tuple run_session(const keel::Session& session, const Names& feeds, const std::vector<keel::Tensor>& in,
                      const Names& fetches, const Names& targets) {
  static constexpr const char* kNothing[1] = {};  // NULL would mean all that the entry has
  std::vector<const char*> f = c_strings(feeds), r = c_strings(fetches), t = c_strings(targets);
  std::vector<keel_array*> arrays, out(r.size());
  for (const keel::Tensor& x : in) arrays.push_back(x.get());
  without_gil([&] {
    keel::call(keel_session_run, session.get(), f.empty() ? kNothing : f.data(), arrays.data(),
               static_cast<uint32_t>(arrays.size()), r.empty() ? kNothing : r.data(), out.data(),
               static_cast<uint32_t>(out.size()), t.data(), static_cast<uint32_t>(t.size()));
  });
  return tuple_of(out);
}

keel::Plan prepare(const keel::Session& session, const Names& feeds, const Names& fetches,
                   const Names& targets) {
  return without_gil([&] { return session.prepare(feeds, fetches, targets); });
}

/// plan(x, y): tensors (or what becomes one) in order; one result alone, else a tuple. Lean, for small plans.
PyObject* run_plan(PyObject* self, PyObject* args, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    if (!nb::inst_ready(self)) throw keel::Error(KEEL_PRECONDITION, "plans are made by Session.prepare()");
    const keel::Plan& plan = *nb::inst_ptr<keel::Plan>(self);
    if (keywords && PyDict_GET_SIZE(keywords)) {
      PyErr_SetString(PyExc_TypeError, "a plan takes its inputs by place");
      throw nb::python_error();
    }
    constexpr size_t kFew = 16;
    auto n = static_cast<size_t>(PyTuple_GET_SIZE(args)), results = static_cast<size_t>(plan.outputs());
    std::vector<keel_array*> many(n + results > kFew ? n + results : 0);
    keel_array *few[kFew] = {}, **in = many.empty() ? few : many.data(), **out = in + n;
    std::vector<keel::Tensor> kept;
    for (size_t k = 0; k < n; k++) {
      PyObject* x = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(k));
      in[k] = is_tensor(x) ? array_of(x) : kept.emplace_back(to_tensor(x)).get();
    }
    without_gil([&] {
      keel::call(keel_plan_run, plan.get(), in, static_cast<uint32_t>(n), out,
                 static_cast<uint32_t>(results));
    });
    if (results == 1) return wrap(out[0]);
    return tuple_of({out, out + results}).release().ptr();
  });
}

}  // namespace

void install_session(nb::module_& m) {
  using keel::Module, keel::Session, keel::Plan;
  nb::class_<Module>(m, "Module", "A file's worth of graphs.")
      .def(
          "save", [](const Module& x, const std::string& path) { x.save(path); }, nb::arg("path"), "Atomic.")
      .def("text", &Module::text, "The text form, which keel.parse() reads back exactly.")
      .def("signatures", &Module::signatures, "For people: a block for each entry.")
      .def("_info", &Module::info)
      .def("_ports", ports)
      .def("_link", &Module::link)
      .def("_gradient", [](Module& x, const std::string& entry,
                           const std::string& as) { return keel::add_gradient(x, entry, as); })
      .def("_variable", [](Module& x, const std::string& name) { return keel::Variable(x, name); })
      .def("_add_case", [](Module& x, const std::string& name, const std::string& entry,
                           const std::vector<keel::Tensor>& in, const std::vector<keel::Tensor>& expected,
                           double rtol, double atol) {
        keel::Case c;
        for (const keel::Tensor& t : in) c.in.push_back(t.array());
        for (const keel::Tensor& t : expected) c.expected.push_back(t.array());
        x.add_case(name, entry, c, rtol, atol);
      });
  m.def("new_module", [] { return Module(context()); });
  m.def("load_module", load);
  m.def("import_module", import_file);
  m.def(
      "parse", [](const std::string& text) { return Module::parse(context(), text); }, nb::arg("text"),
      "A module of its text form. Raises InvalidError with line and column.");
  m.def("default_device", [] { return keel::detail::here().device(); });

  nb::class_<Session>(m, "Session")
      .def("__init__",
           [](Session* self, const Module& module, const std::string& device, const nb::dict& options) {
             new (self) Session(module, device, options_of(options));
           })
      .def("_run", run_session)
      .def("_prepare", prepare);
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(run_plan)}, {0, nullptr}};
  nb::class_<Plan>(m, "Plan", nb::type_slots(slots))
      .def_prop_ro("inputs", &Plan::inputs)
      .def_prop_ro("outputs", &Plan::outputs)
      .def("_report", [](const Plan& plan) { return plan.report(); });
  m.def("save_checkpoint", [](const std::string& path, const keel::NamedVariables& variables) {
    without_gil([&] { keel::save_checkpoint(context(), path, variables); });
  });
  m.def("load_checkpoint", [](const std::string& path, const keel::NamedVariables& variables) {
    without_gil([&] { keel::load_checkpoint(context(), path, variables); });
  });
}

}  // namespace keel_python
