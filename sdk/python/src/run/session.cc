// session.cc: modules (files of graphs), sessions and plans, on the C++ SDK; keel/session.py is the public
// interface.
#include "run/session.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "keel/save.hpp"
#include "keel/session.hpp"
#include "run/brief.h"
#include "run/context.h"
#include "run/plan.h"
#include "values/dtype.h"
#include "values/literal.h"

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

/// Parameters or results of an entry ("": the only one): [(name, dtype, shape with -1 for unknown sizes)].
nb::list ports(keel::Module& module, const std::string& entry, bool results) {
  keel::Graph graph = module.graph_of(entry);
  nb::list out;
  for (const auto& [name, value] : graph.ports(results)) {
    keel_dt dtype = 0;
    int64_t shape[KEEL_MAX_RANK];
    int32_t ndim = 0;
    keel::call(keel_graph_value_at, graph.get(), value, nullptr, nullptr, &dtype, shape, &ndim);
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

/// whole: fetches are all results of the entry, with all its effects.
nb::tuple run_session(const keel::Session& session, const Names& feeds, const std::vector<keel::Tensor>& in,
                      const Names& fetches, const Names& targets, bool whole) {
  static constexpr const char* kNothing[1] = {};  // NULL means all of the entry
  std::vector<const char*> f = c_strings(feeds), r = c_strings(fetches), t = c_strings(targets);
  std::vector<keel_array*> arrays = raw(in), out(r.size());
  const char* const* wanted = whole ? nullptr : r.empty() ? kNothing : r.data();
  without_gil([&] {
    keel::call(keel_session_run, session.get(), f.empty() ? kNothing : f.data(), arrays.data(),
               static_cast<uint32_t>(arrays.size()), wanted, out.data(), static_cast<uint32_t>(out.size()),
               t.data(), static_cast<uint32_t>(t.size()));
  });
  return tuple_of(out);
}

nb::object prepare(const keel::Session& session, const Names& feeds, const Names& fetches,
                   const Names& targets, bool may_be_brief) {
  return plan_object(without_gil([&] { return session.prepare(feeds, fetches, targets); }), may_be_brief);
}

/// Adds the graph of an entry to the current trace; returns its results.
std::vector<keel::Tensor> write_entry(const keel::Module& module, const std::string& entry,
                                      const std::vector<keel::Tensor>& in) {
  endless_written++;  // the entry may contain loops or output
  std::vector<keel_array*> xs = raw(in);
  std::array<keel_array*, 256> out;
  uint32_t n = 0;
  keel::call(keel_trace_entry, keel::detail::this_trace, keel::detail::tape_handle(), module.get(),
             entry.c_str(), xs.data(), static_cast<uint32_t>(xs.size()), out.data(),
             static_cast<uint32_t>(out.size()), &n);
  return tensors(keel::take_arrays({out.begin(), out.begin() + n}));
}

}  // namespace

void install_session(nb::module_& m) {
  using keel::Module, keel::Session;
  nb::class_<Module>(
      m, "Module",
      "Graphs, as in a file. A module with one entry is callable, on module.device\n"
      "(None: the current device): returns one result, or a named tuple. The first call makes a Session.",
      nb::dynamic_attr())
      .def("_save", [](const Module& x, const std::string& path) { x.save(path); })
      .def("text", &Module::text, "The text form, which keel.parse() reads back exactly.")
      .def("signatures", &Module::signatures, "For people: a block per entry.")
      .def("_info", &Module::info)
      .def("_ports", ports)
      .def("_link", &Module::link)
      .def("_metadata", &Module::metadata)
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
      "parse",
      [](nb::handle text) { return Module::parse(context(), need_text(text, "the text of a module")); },
      nb::arg("text"), "A module from its text form. Raises InvalidError with line and column.");
  m.def("write_entry", write_entry);
  m.def("default_device", [] { return keel::detail::here().device(); });

  nb::class_<Session>(m, "Session")
      .def("__init__",
           [](Session* self, const Module& module, const std::string& device, const nb::dict& options) {
             new (self) Session(module, device, options_of(options));
           })
      .def("_run", run_session, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("whole") = false)
      .def("_prepare", prepare);
  m.def("save_checkpoint", [](const std::string& path, const keel::NamedVariables& variables) {
    without_gil([&] { keel::save_checkpoint(context(), path, variables); });
  });
  m.def("load_checkpoint", [](const std::string& path, const keel::NamedVariables& variables) {
    without_gil([&] { keel::load_checkpoint(context(), path, variables); });
  });
}

}  // namespace keel_python
