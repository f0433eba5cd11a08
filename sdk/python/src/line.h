// line.h: which line of the user's program writes what is traced: failed runs of the graph name it.
#ifndef KEEL_PYTHON_LINE_H
#define KEEL_PYTHON_LINE_H
#include "keel/home.hpp"

namespace keel_python {

/// Tells the trace the innermost line of Python that stands outside of this package. Needs the GIL.
void note_line(keel_trace* trace) noexcept;

/// The same for the trace of this thread, where it writes one.
inline void note_line() noexcept {
  if (keel::detail::this_trace) [[unlikely]]
    note_line(keel::detail::this_trace);
}

void install_line();

}  // namespace keel_python
#endif
