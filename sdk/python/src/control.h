// control.h: bodies of branches and loops, and the ops that are there for their effects.
#ifndef KEEL_PYTHON_CONTROL_H
#define KEEL_PYTHON_CONTROL_H
#include "array.h"

namespace keel_python {
void install_control(nb::module_& m);
}
#endif
