// function.h: keel._keel.Function: Python code that is traced once per signature of its arguments.
#ifndef KEEL_PYTHON_FUNCTION_H
#define KEEL_PYTHON_FUNCTION_H
#include "values/array.h"

namespace keel_python {
void install_function(nb::module_& m);
}
#endif
