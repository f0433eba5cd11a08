// dim.h: sizes: numbers, or keel.Dim for those that a trace names.
#ifndef KEEL_PYTHON_DIM_H
#define KEEL_PYTHON_DIM_H
#include <functional>

#include "array.h"
#include "keel/ints.hpp"
#include "literal.h"

namespace keel_python {

/// keel.SizeFloat: what a trace computes of sizes as Python would compute a float.
struct SizeFloat {
  keel::Tensor tensor;             // f64[]
  std::function<double()> number;  // in the call that is traced
  std::function<bool()> zero;
};

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
