// tensor_type.h: the methods of the type keel.Tensor; with them it is complete.
#ifndef KEEL_PYTHON_TENSOR_TYPE_H
#define KEEL_PYTHON_TENSOR_TYPE_H
#include "values/array.h"

namespace keel_python {
void install_tensor_type(nb::module_& m);
}
#endif
