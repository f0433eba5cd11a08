// dim.h: sizes: numbers, or keel.Dim for those that a trace names.
#ifndef KEEL_PYTHON_DIM_H
#define KEEL_PYTHON_DIM_H
#include "array.h"
#include "keel/ints.hpp"

namespace keel_python {

/// A number, or a keel.Dim; a TypeError for any other object.
keel::Dim need_dim(nb::handle value);
/// One of them, or a sequence.
keel::Ints need_ints(nb::handle value);
/// A Python int where it is a number.
nb::object dim_object(const keel::Dim& dim);
/// Of a tensor: ints and keel.Dims.
PyObject* shape_of(keel_array* array);
void install_dim(nb::module_& m);

}  // namespace keel_python
#endif
