// timeline.cc: the timeline of the process and user-defined spans; keel/timeline.py has the with blocks.
#include "run/timeline.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "values/array.h"

namespace keel_python {

namespace {

void begin(const std::string& path, bool runs) {
  without_gil([&] { keel::call(keel_timeline_begin, path.c_str(), runs ? 1 : 0); });
}
void end() {
  without_gil([] { keel::call(keel_timeline_end); });
}
void span(const std::string& track, const std::string& name, int64_t begin_ns,
          const std::optional<std::string>& args) {
  keel_timeline_span(track.c_str(), name.c_str(), "program", begin_ns, keel_timeline_now(),
                     args ? args->c_str() : nullptr);
}

}  // namespace

void install_timeline(nb::module_& m) {
  m.def("timeline_begin", begin);
  m.def("timeline_end", end);
  m.def("timeline_now", keel_timeline_now);
  m.def("timeline_span", span, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace keel_python
