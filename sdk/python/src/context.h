// context.h: contexts, devices, and the scopes in which a thread's ops run on them.
#ifndef KEEL_PYTHON_CONTEXT_H
#define KEEL_PYTHON_CONTEXT_H
#include "array.h"
#include "keel/context.hpp"

namespace keel_python {
/// Options of sessions, imports and functions, as a program gives them by keyword.
keel::Options options_of(const nb::dict& given);
void install_context(nb::module_& m);
}  // namespace keel_python
#endif
