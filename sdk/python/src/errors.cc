// errors.cc: the one place where failures of libkeel become Python exceptions (keel/errors.py).
#include "errors.h"

namespace keel_python {

namespace {

void raise(const keel::Error& e, Fault fault) {
  if (e.code() == KEEL_CANCELLED && PyErr_CheckSignals()) return;  // by Ctrl-C: Python says KeyboardInterrupt
  static constexpr const char* kFaults[] = {"", "shape", "dtype"};
  try {
    nb::object make = nb::module_::import_("keel.errors").attr("_make");
    nb::object made = make(e.code(), kFaults[static_cast<int>(fault)], e.what(), e.op().c_str(),
                           e.node().c_str(), e.plugin().c_str(), e.hint().c_str());
    PyErr_SetObject(made.type().ptr(), made.ptr());
  } catch (nb::python_error& failed) {
    failed.restore();
  }
}

void translate(const std::exception_ptr& thrown, void*) {
  if (!thrown) wait_for_the_end();  // no exception of C++: see gil.h
  try {
    std::rethrow_exception(thrown);
  } catch (const FaultyCall& e) {
    raise(e, e.fault);
  } catch (const keel::Error& e) {
    raise(e, Fault::kOther);
  }
}

}  // namespace

void raise_current() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const keel::Error&) {
    translate(std::current_exception(), nullptr);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

void install_errors(nb::module_& m) {
  nb::register_exception_translator(translate);
  nb::dict codes;
#define KEEL_CODE(name) codes[#name] = static_cast<int>(KEEL_##name)
  KEEL_CODE(CANCELLED);
  KEEL_CODE(UNKNOWN);
  KEEL_CODE(INVALID);
  KEEL_CODE(NOT_FOUND);
  KEEL_CODE(EXISTS);
  KEEL_CODE(OOM);
  KEEL_CODE(PRECONDITION);
  KEEL_CODE(RANGE);
  KEEL_CODE(UNIMPLEMENTED);
  KEEL_CODE(INTERNAL);
  KEEL_CODE(UNAVAILABLE);
#undef KEEL_CODE
  m.attr("codes") = codes;
}

}  // namespace keel_python
