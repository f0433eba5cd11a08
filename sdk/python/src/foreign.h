// foreign.h: tensors of what other libraries hold.
#ifndef KEEL_PYTHON_FOREIGN_H
#define KEEL_PYTHON_FOREIGN_H
#include "array.h"

namespace keel_python {

/// Of an object with the buffer protocol, DLPack or __array__; empty if it has none. copy: never share.
keel::Tensor from_foreign(nb::handle value, bool copy);
/// The same memory as elements of another dtype of the same size.
keel::Tensor bits_as(const keel::Tensor& t, keel_dt dtype);

}  // namespace keel_python
#endif
