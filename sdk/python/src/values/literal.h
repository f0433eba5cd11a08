// literal.h: Python objects in place of tensors, as the C++ SDK's operands and tensors.
#ifndef KEEL_PYTHON_LITERAL_H
#define KEEL_PYTHON_LITERAL_H
#include <optional>

#include "keel/operators.hpp"
#include "values/array.h"

namespace keel_python {

/// A tensor; a weak literal (bool, int, float, nested lists and tuples of numbers); None; a variable, which
/// is read; or an array of NumPy and others, which is copied. Empty for other objects.
std::optional<keel::Operand> find_operand(nb::handle value);
/// The same; other objects raise a TypeError that names the op's parameter.
keel::Operand need_operand(nb::handle value, const char* op, const char* parameter);

/// The same for a required operand: None raises a TypeError, too.
keel::Operand need_value(nb::handle value, const char* op, const char* parameter);

/// Whether a literal of that kind can be an element of the dtype.
bool has_place(keel::detail::Weak::Kind kind, keel_dt dtype);
/// As keel.array(): literals get the dtype, or (0) their default.
keel::Tensor to_tensor(nb::handle value, keel_dt dtype = 0);

}  // namespace keel_python
#endif
