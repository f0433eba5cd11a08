// literal.h: what Python programs write in place of tensors, as the C++ SDK's operands and tensors.
#ifndef KEEL_PYTHON_LITERAL_H
#define KEEL_PYTHON_LITERAL_H
#include <optional>

#include "array.h"
#include "keel/operators.hpp"

namespace keel_python {

inline constexpr keel::Place kNowhere;  // of the caller in C++ errors: Python has tracebacks

/// A tensor; a weak literal (bool, int, float, nested lists and tuples of them); None; a variable, which is
/// read; or what NumPy and others hold, which is copied. Nothing for any other object.
std::optional<keel::Operand> find_operand(nb::handle value);
/// The same; a TypeError that names the op's parameter for any other object.
keel::Operand need_operand(nb::handle value, const char* op, const char* parameter);

/// The same where nothing may be left out.
keel::Operand need_value(nb::handle value, const char* op, const char* parameter);

/// May a literal of that kind be an element of the dtype?
bool has_place(keel::detail::Weak::Kind kind, keel_dt dtype);
/// As keel.array(): literals get the dtype, or their own.
keel::Tensor to_tensor(nb::handle value, keel_dt dtype = 0);

}  // namespace keel_python
#endif
