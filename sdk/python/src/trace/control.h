// control.h: bodies of branches and loops, and ops with effects.
#ifndef KEEL_PYTHON_CONTROL_H
#define KEEL_PYTHON_CONTROL_H
#include "values/array.h"

namespace keel_python {
void install_control(nb::module_& m);
}
#endif
