// variable.h: keel.Variable, the C++ SDK's Variable as a Python type.
#ifndef KEEL_PYTHON_VARIABLE_H
#define KEEL_PYTHON_VARIABLE_H
#include "keel/variable.hpp"
#include "values/array.h"

namespace keel_python {
void install_variable(nb::module_& m);
}
#endif
