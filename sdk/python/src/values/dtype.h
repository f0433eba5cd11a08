// dtype.h: keel.DType, an element type: keel.f32, keel.i64 ... A call makes a tensor.
#ifndef KEEL_PYTHON_DTYPE_H
#define KEEL_PYTHON_DTYPE_H
#include "values/array.h"

namespace keel_python {

/// From a DType, a name ("f32", "float32") or a NumPy dtype; else a DTypeError that lists all dtypes.
keel_dt need_dtype(nb::handle value);
/// The DType object; borrowed.
PyObject* dtype_object(keel_dt dtype);
void install_dtype(nb::module_& m);

}  // namespace keel_python
#endif
