// op.h: ops of the catalogue as Python functions, and the fast path for operators.
#ifndef KEEL_PYTHON_OP_H
#define KEEL_PYTHON_OP_H
#include "base/line.h"
#include "values/literal.h"

namespace keel_python {

/// Applies an op without attributes to tensors: one result, or NULL with an exception set.
PyObject* apply_plain(keel::OpId id, PyObject* const* in, size_t n) noexcept;
/// The same for all objects that find_operand() accepts; NotImplemented for others, as required of Python
/// operators.
PyObject* apply_operator(keel::OpId id, PyObject* const* in, size_t n) noexcept;

inline constexpr int64_t kBig = 2048;  // ops on this many elements or more release the GIL

/// Also true of an array in device memory, whose op may wait for the device.
inline bool is_big(const keel_array* array) {
  constexpr int32_t kHostMemory = 1;  // kDLCPU
  keel_tensor view;
  keel_array_tensor(array, &view);
  int64_t size = 1;
  for (int32_t d = 0; d < view.ndim; d++) size *= view.shape[d];
  return size >= kBig || view.device.type > kHostMemory;
}

/// The rest of apply_quick: large arrays, and arrays in device memory, without the GIL; a paused tape.
template <size_t n>
[[gnu::noinline]] PyObject* apply_rest(keel::OpId id, PyObject* const* in,
                                       keel_array* const (&raw)[n]) noexcept {
  using namespace keel::detail;
  if (this_tape && !this_tape->handle) return apply_plain(id, in, n);
  note_line();
  keel_array* out = nullptr;
  try {
    const bool to_trace = belongs_to_trace(id, false);
    keel_op* op = home_of(raw, to_trace).op(id);
    if (without_gil([&] { return apply_op(op, to_trace, raw, n, {&out, 1}, nullptr); }) == KEEL_OK) [[likely]]
      return wrap(out);
  } catch (...) {  // reported below
  }
  return apply_plain(id, in, n);
}

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
    return apply_rest<n>(id, in, raw);
  note_line();
  try {
    if (apply_op(here().op(id), belongs_to_trace(id, false), raw, n, {&out, 1}, nullptr) == KEEL_OK)
        [[likely]]
      return wrap(out);
  } catch (...) {  // reported below
  }
  return apply_plain(id, in, n);
}

void install_ops(nb::module_& m);
void install_einsum(nb::module_& m);

}  // namespace keel_python
#endif
