// context.h: contexts, devices, and the scopes in which a thread's ops run on them.
#ifndef KEEL_PYTHON_CONTEXT_H
#define KEEL_PYTHON_CONTEXT_H
#include "array.h"

namespace keel_python {
void install_context(nb::module_& m);
}
#endif
