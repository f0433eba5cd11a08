// session.h: modules (files of graphs), sessions and plans.
#ifndef KEEL_PYTHON_SESSION_H
#define KEEL_PYTHON_SESSION_H
#include "keel/module.hpp"
#include "values/array.h"

namespace keel_python {
void install_session(nb::module_& m);
}
#endif
