// foreign.h: tensors from arrays of other libraries.
#ifndef KEEL_PYTHON_FOREIGN_H
#define KEEL_PYTHON_FOREIGN_H
#include "values/array.h"

namespace keel_python {

/// From an object with the buffer protocol, DLPack or __array__; empty for other objects. copy: does not
/// share memory.
keel::Tensor from_foreign(nb::handle value, bool copy);
/// The same memory with another dtype of the same element size.
keel::Tensor bits_as(const keel::Tensor& t, keel_dt dtype);
/// The codes of a tensor of a storage dtype as u8, one a byte, as ml_dtypes keeps them; and back.
keel::Tensor unpacked(const keel::Tensor& t);
keel::Tensor packed(const keel::Tensor& codes, keel_dt dtype);

}  // namespace keel_python
#endif
