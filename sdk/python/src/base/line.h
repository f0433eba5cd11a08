// line.h: source lines of traced nodes, for errors of later runs.
#ifndef KEEL_PYTHON_LINE_H
#define KEEL_PYTHON_LINE_H
#include "keel/home.hpp"

namespace keel_python {

/// Records in the trace the innermost Python line outside of this package. Requires the GIL.
void note_line(keel_trace* trace) noexcept;

/// The same for the trace that this thread writes, if any.
inline void note_line() noexcept {
  if (keel::detail::this_trace) [[unlikely]]
    note_line(keel::detail::this_trace);
}

void install_line();

}  // namespace keel_python
#endif
