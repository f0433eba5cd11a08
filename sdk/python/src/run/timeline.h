// timeline.h: a trace of the process over time, in a file for viewers.
#ifndef KEEL_PYTHON_TIMELINE_H
#define KEEL_PYTHON_TIMELINE_H
#include "base/errors.h"

namespace keel_python {
void install_timeline(nb::module_& m);
}  // namespace keel_python
#endif
