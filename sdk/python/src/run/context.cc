// context.cc: contexts, devices, and scopes that select the device of a thread's ops.
//
// The default context is created at the first use of a device, with all installed plugins; an import creates
// none.
#include "run/context.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "keel/scope.hpp"
#include "values/literal.h"

namespace keel_python {

namespace {

/// `with keel.device("cpu"):` selects the device of this thread's ops until the end of the block.
class DeviceScope {
 public:
  explicit DeviceScope(keel::detail::Home& home) : home_(home) {}
  void enter() { before_.push_back(std::exchange(keel::detail::this_home, &home_)); }
  void leave() {
    if (before_.empty()) throw keel::Error(KEEL_PRECONDITION, "the scope was not entered");
    keel::detail::this_home = before_.back();
    before_.pop_back();
  }

 private:
  keel::detail::Home& home_;
  std::vector<keel::detail::Home*> before_;
};

DeviceScope device(nb::handle name) {
  keel::Scope found = keel::device(
      need_text(name, "the name of a device"));  // fails for an unknown device; this scope ends immediately
  return DeviceScope(keel::detail::here());
}

std::string option_text(nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.is(Py_True) ? "1" : "0";
  return nb::cast<std::string>(nb::str(value));
}

}  // namespace

keel::Options options_of(const nb::dict& given) {
  keel::Options out;
  for (auto [name, value] : given) {
    const auto key = nb::cast<std::string>(name);
    if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value)) {
      out.set(key, option_text(value));
    } else if (key == "place") {  // an option for each pattern
      for (nb::handle each : value) out.set(key, option_text(each));
    } else {
      std::string list;
      for (nb::handle each : value) list += (list.empty() ? "" : ",") + option_text(each);
      out.set(key, list);
    }
  }
  return out;
}

void install_context(nb::module_& m) {
  nb::class_<DeviceScope>(m, "DeviceScope")
      .def("__enter__",
           [](nb::object self) {
             nb::cast<DeviceScope&>(self).enter();
             return self;
           })
      .def("__exit__", [](DeviceScope& self, nb::args) { self.leave(); });
  m.def("device", device, nb::arg("name").none(),
        "with keel.device('cpu'): ops of this thread run there. Raises DeviceError for an unknown device.");
  m.def(
      "devices", [] { return keel::default_context().devices(); },
      "Names of the devices of the default context.");
  m.def(
      "report",
      [](nb::handle what) { return keel::default_context().report(need_text(what, "the name of a report")); },
      nb::arg("what"));
  m.def("load_plugin", [](nb::handle path) {
    const_cast<keel::Context&>(keel::default_context()).load_plugin(need_text(path, "the path of a plugin"));
  });
  m.def("cancel", cancel, nb::arg("on") = true,
        "Stops all present and future runs, with CancelledError, until cancel(False). Thread-safe.");
  m.attr("__version__") = keel_version();
}

}  // namespace keel_python
