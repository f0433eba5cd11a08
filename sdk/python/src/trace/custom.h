// custom.h: results with a user-defined gradient.
#ifndef KEEL_PYTHON_CUSTOM_H
#define KEEL_PYTHON_CUSTOM_H
#include "values/array.h"

namespace keel_python {
void install_custom(nb::module_& m);
}
#endif
