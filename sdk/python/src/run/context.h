// context.h: contexts, devices, and scopes that select the device of a thread's ops.
#ifndef KEEL_PYTHON_CONTEXT_H
#define KEEL_PYTHON_CONTEXT_H
#include "keel/context.hpp"
#include "values/array.h"

namespace keel_python {
/// Options of sessions, imports and functions from keyword arguments.
keel::Options options_of(const nb::dict& given);
void install_context(nb::module_& m);
}  // namespace keel_python
#endif
