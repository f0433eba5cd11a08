// errors.h: failures as Python exceptions.
//
// How to read it: raise() sets the exception, of keel/errors.py for a keel::Error; guarded() is the body of
// every function that CPython calls directly; nanobind's functions get the same by install_errors().
#ifndef KEEL_PYTHON_ERRORS_H
#define KEEL_PYTHON_ERRORS_H
#include <nanobind/nanobind.h>

#include <exception>
#include <initializer_list>
#include <string_view>

#include "gil.h"
#include "keel/error.hpp"

namespace keel_python {

namespace nb = nanobind;

/// Which subclass of keel.Error a KEEL_INVALID becomes.
enum class Fault { kOther, kShape, kDtype };
struct FaultyCall : keel::Error {
  FaultyCall(const keel::Error& error, Fault fault) : keel::Error(error), fault(fault) {}
  Fault fault;
};

/// Sets the Python exception. Outside of a catch block, where unless_ended() cannot work.
void raise(const std::exception_ptr& thrown) noexcept;

/// The result of `body`, or NULL (-1) with a Python exception set.
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

/// A TypeError that names `what` for all but strings.
std::string need_text(nb::handle value, const char* what);
/// The same for all but True and False.
bool need_flag(nb::handle value, const char* what);
/// The last overload of a call, for arguments that no other takes: a TypeError with what it takes and got.
[[noreturn]] void refuse_call(const char* takes, const nb::args& args, const nb::kwargs& keywords);
/// So in the words in which Python refuses it of a function with these parameters, of which the first has no
/// default.
[[noreturn]] void refuse_as_python(const char* function, std::initializer_list<std::string_view> parameters,
                                   const nb::args& args, const nb::kwargs& keywords);

void install_errors(nb::module_& m);

}  // namespace keel_python
#endif
