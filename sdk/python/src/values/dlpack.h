// dlpack.h: tensors to and from other libraries without a copy, in DLPack capsules.
#ifndef KEEL_PYTHON_DLPACK_H
#define KEEL_PYTHON_DLPACK_H
#include "values/array.h"

namespace keel_python {

/// A new capsule; versioned: for consumers of DLPack 1.
nb::object to_dlpack(const keel::Tensor& t, bool versioned);
/// Consumes the capsule; the tensor shares its memory.
keel::Tensor from_dlpack(nb::handle capsule);

}  // namespace keel_python
#endif
