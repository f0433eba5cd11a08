// dlpack.h: tensors to and from other libraries without a copy, by DLPack's capsules.
#ifndef KEEL_PYTHON_DLPACK_H
#define KEEL_PYTHON_DLPACK_H
#include "array.h"

namespace keel_python {

/// A capsule; versioned where the consumer knows DLPack 1.
nb::object to_dlpack(const keel::Tensor& t, bool versioned);
/// Takes the capsule over.
keel::Tensor from_dlpack(nb::handle capsule);

}  // namespace keel_python
#endif
