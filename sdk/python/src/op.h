// op.h: ops of the catalogue as Python functions, and the short way for operators.
#ifndef KEEL_PYTHON_OP_H
#define KEEL_PYTHON_OP_H
#include "line.h"
#include "literal.h"

namespace keel_python {

/// Of tensors, without attributes: one result, or NULL with an exception set.
PyObject* apply_plain(keel::OpId id, PyObject* const* in, size_t n) noexcept;
/// Of anything that find_operand() knows; for any other object NotImplemented, as Python's operators want it.
PyObject* apply_operator(keel::OpId id, PyObject* const* in, size_t n) noexcept;

inline constexpr int64_t kBig = 2048;  // elements from which on an op lets other Python threads run

inline bool is_big(const keel_array* array) { return elements_of(array) >= kBig; }

/// The hot path: one load for the bound op, no operands copied.
template <size_t n>
inline PyObject* apply_quick(keel::OpId id, PyObject* const* in) noexcept {
  using namespace keel::detail;
  keel_array *raw[n], *out = nullptr;
  bool big = false;
  for (size_t k = 0; k < n; k++) {
    if (!is_tensor(in[k])) [[unlikely]]
      return apply_operator(id, in, n);
    raw[k] = array_of(in[k]);
    big = big || is_big(raw[k]);
  }
  if (big || (this_tape && !this_tape->handle)) [[unlikely]]
    return apply_plain(id, in, n);
  note_line();
  try {
    if (apply_op(here().op(id), belongs_to_trace(id, false), raw, n, {&out, 1}, nullptr) == KEEL_OK)
        [[likely]]
      return wrap(out);
  } catch (...) {  // said below
  }
  return apply_plain(id, in, n);
}

void install_ops(nb::module_& m);

}  // namespace keel_python
#endif
