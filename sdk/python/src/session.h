// session.h: modules (files of graphs), sessions and plans.
#ifndef KEEL_PYTHON_SESSION_H
#define KEEL_PYTHON_SESSION_H
#include "array.h"
#include "keel/module.hpp"

namespace keel_python {
void install_session(nb::module_& m);
}
#endif
