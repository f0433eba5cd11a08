// gil.h: releasing the GIL, and calling Python code, safely at interpreter shutdown.
//
// After the interpreter ends, a thread that requests the GIL, also within Python code, is terminated by
// pthread_exit (before Python 3.14). In C++ this is an exception that must not be swallowed, and destructors
// would drop references without the GIL. Such a thread waits here for the end of the process, as in later
// Pythons.
#ifndef KEEL_PYTHON_GIL_H
#define KEEL_PYTHON_GIL_H
#include <cxxabi.h>
#include <unistd.h>

#include "base/interrupt.h"

namespace keel_python {

[[noreturn]] inline void wait_for_the_end() {
  while (true) pause();
}
template <class F>
auto unless_ended(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    wait_for_the_end();
  }
}

/// Releases the GIL during its lifetime; Ctrl-C stops runs of Keel meanwhile. Python objects must not be
/// used.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    unless_ended([&] { PyEval_RestoreThread(thread_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  Run run_;
  PyThreadState* thread_;
};

/// Calls a Python function and returns its result; throws its exception.
template <class... Args>
nb::object call_python(nb::handle function, const Args&... args) {
  PyObject* out =
      unless_ended([&] { return PyObject_CallFunctionObjArgs(function.ptr(), args.ptr()..., nullptr); });
  if (!out) throw nb::python_error();
  return nb::steal(out);
}

/// Runs `body` without the GIL; it must not use Python objects.
template <class F>
auto without_gil(F&& body) {
  WithoutGil others;
  return body();
}

}  // namespace keel_python
#endif
