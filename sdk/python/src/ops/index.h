// index.h: indexing, length and rows of keel.Tensor, as functions of CPython's slots.
#ifndef KEEL_PYTHON_INDEX_H
#define KEEL_PYTHON_INDEX_H
#include "values/array.h"

namespace keel_python {
PyObject* tensor_index(PyObject* self, PyObject* index);
PyObject* tensor_row(PyObject* self, Py_ssize_t i);
Py_ssize_t tensor_length(PyObject* self);
PyObject* tensor_rows(PyObject* self);
}  // namespace keel_python
#endif
