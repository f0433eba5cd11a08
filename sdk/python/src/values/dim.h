// dim.h: sizes: numbers, or keel.Dim for symbols of a trace.
#ifndef KEEL_PYTHON_DIM_H
#define KEEL_PYTHON_DIM_H
#include <functional>

#include "keel/ints.hpp"
#include "values/array.h"

namespace keel_python {

/// keel.SizeFloat: a float computed from sizes by a trace.
struct SizeFloat {
  keel::Tensor tensor;             // f64[]
  std::function<double()> number;  // the value in the call being traced
  std::function<bool()> zero;
};

/// A number, or a keel.Dim; a TypeError for any other object.
keel::Dim need_dim(nb::handle value);
/// One size, or a sequence of sizes.
keel::Ints need_ints(nb::handle value);
/// A Python int if it is a number, else a keel.Dim.
nb::object dim_object(const keel::Dim& dim);
/// The shape of a tensor: a new tuple of ints and keel.Dims.
PyObject* shape_of(keel_array* array);
void install_dim(nb::module_& m);

}  // namespace keel_python
#endif
