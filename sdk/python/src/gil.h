// gil.h: letting Python's other threads run, and calling Python code, in ways that outlive the interpreter.
//
// Once the interpreter ends, a thread that asks for the GIL, also within Python code, is ended by
// pthread_exit (before Python 3.14). C++ sees that as an exception that must not be swallowed, and
// destructors would drop references without the GIL. Such a thread waits here for the end of the process, as
// later Pythons have it.
#ifndef KEEL_PYTHON_GIL_H
#define KEEL_PYTHON_GIL_H
#include <cxxabi.h>
#include <unistd.h>

#include "interrupt.h"

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

/// While it lives other Python threads run and Ctrl-C stops what Keel runs; Python objects must not be
/// touched.
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

/// The result of a Python function; throws what it raised.
template <class... Args>
nb::object call_python(nb::handle function, const Args&... args) {
  PyObject* out =
      unless_ended([&] { return PyObject_CallFunctionObjArgs(function.ptr(), args.ptr()..., nullptr); });
  if (!out) throw nb::python_error();
  return nb::steal(out);
}

/// Runs `body` without the lock; it must not touch Python objects.
template <class F>
auto without_gil(F&& body) {
  WithoutGil others;
  return body();
}

}  // namespace keel_python
#endif
