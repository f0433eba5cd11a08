// errors.h: failures as Python exceptions.
//
// How to read it: raise() sets the exception, of keel/errors.py for a keel::Error; guarded() wraps functions
// that CPython calls directly; install_errors() does the same for nanobind's functions.
#ifndef KEEL_PYTHON_ERRORS_H
#define KEEL_PYTHON_ERRORS_H
#include <nanobind/nanobind.h>

#include <exception>
#include <initializer_list>
#include <string_view>

#include "base/gil.h"
#include "keel/error.hpp"

namespace keel_python {

namespace nb = nanobind;

inline constexpr keel::Place kNowhere;  // of the caller in C++ errors: Python has tracebacks

/// The subclass of keel.Error for a KEEL_INVALID.
enum class Fault { kOther, kShape, kDtype };
struct FaultyCall : keel::Error {
  FaultyCall(const keel::Error& error, Fault fault) : keel::Error(error), fault(fault) {}
  Fault fault;
};

/// Sets the Python exception. Must be called outside of a catch block, where unless_ended() does not work.
void raise(const std::exception_ptr& thrown) noexcept;

/// Returns the result of `body`, or NULL (-1) with a Python exception set.
template <class F>
auto guarded(F&& body) noexcept -> decltype(body()) {
  std::exception_ptr thrown;
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    wait_for_the_end();
  } catch (...) {
    thrown = std::current_exception();
  }
  raise(thrown);
  if constexpr (std::is_pointer_v<decltype(body())>)
    return nullptr;
  else
    return -1;
}

/// The text of a str; a TypeError that names `what` for other objects.
std::string need_text(nb::handle value, const char* what);
/// The value of a bool; a TypeError that names `what` for other objects.
bool need_flag(nb::handle value, const char* what);
/// The last overload of a call, for arguments that match no other: raises a TypeError with the accepted and
/// the given ones.
[[noreturn]] void refuse_call(const char* takes, const nb::args& args, const nb::kwargs& keywords);
/// The same in the words of Python's own TypeError for a function with these parameters, of which only the
/// first has no default.
[[noreturn]] void refuse_as_python(const char* function, std::initializer_list<std::string_view> parameters,
                                   const nb::args& args, const nb::kwargs& keywords);

void install_errors(nb::module_& m);

}  // namespace keel_python
#endif
