// operators.h: Python's operators on tensors, as slots of the type keel.Tensor.
#ifndef KEEL_PYTHON_OPERATORS_H
#define KEEL_PYTHON_OPERATORS_H
#include "values/array.h"

namespace keel_python {
extern PyNumberMethods tensor_number;
PyObject* tensor_compare(PyObject* a, PyObject* b, int how);
/// Returns `t`; throws for a tensor of a trace, which has no value.
const keel::Tensor& need_value(const keel::Tensor& t);
}  // namespace keel_python
#endif
