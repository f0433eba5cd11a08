// errors.cc: the conversion of failures of libkeel to Python exceptions (keel/errors.py).
#include "base/errors.h"

#include <algorithm>
#include <optional>

namespace keel_python {

namespace {

void raise_error(const keel::Error& e, Fault fault) {
  if (e.code() == KEEL_CANCELLED && PyErr_CheckSignals()) return;  // Ctrl-C: raised as KeyboardInterrupt
  static constexpr const char* kFaults[] = {"", "shape", "dtype"};
  try {
    nb::object make = nb::module_::import_("keel.errors").attr("_make");
    auto text = [](const std::string& s) {  // names of files may be no UTF-8
      return nb::steal<nb::object>(
          PyUnicode_DecodeUTF8(s.c_str(), static_cast<Py_ssize_t>(s.size()), "replace"));
    };
    nb::object made =
        call_python(make, nb::int_(e.code()), text(kFaults[static_cast<int>(fault)]), text(e.what()),
                    text(e.op()), text(e.node()), text(e.plugin()), text(e.hint()));
    PyErr_SetObject(made.type().ptr(), made.ptr());
  } catch (nb::python_error& failed) {
    failed.restore();
  }
}

/// Returns false for exceptions of other libraries.
bool raise_ours(const std::exception_ptr& thrown) {
  std::optional<FaultyCall> failure;  // raised after the catch block
  try {
    std::rethrow_exception(thrown);
  } catch (const FaultyCall& e) {
    failure = e;
  } catch (const keel::Error& e) {
    failure.emplace(e, Fault::kOther);
  } catch (...) {
    return false;
  }
  raise_error(*failure, failure->fault);
  return true;
}

void translate(const std::exception_ptr& thrown, void*) {
  if (!thrown) wait_for_the_end();  // not a C++ exception: see gil.h
  if (!raise_ours(thrown)) std::rethrow_exception(thrown);
}

}  // namespace

void raise(const std::exception_ptr& thrown) noexcept {
  if (raise_ours(thrown)) return;
  try {
    std::rethrow_exception(thrown);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

std::string need_text(nb::handle value, const char* what) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8AndSize(value.ptr(), &size) : nullptr;
  if (text) return {text, static_cast<size_t>(size)};
  PyErr_Format(PyExc_TypeError, "%s must be a string, not %R", what, value.ptr());
  throw nb::python_error();
}

bool need_flag(nb::handle value, const char* what) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  PyErr_Format(PyExc_TypeError, "%s must be True or False, not %R", what, value.ptr());
  throw nb::python_error();
}

void refuse_call(const char* takes, const nb::args& args, const nb::kwargs& keywords) {
  std::string got;
  auto add = [&](const std::string& name, nb::handle value) {
    got += (got.empty() ? "" : ", ") + name + Py_TYPE(value.ptr())->tp_name;
  };
  for (nb::handle each : args) add("", each);
  for (auto [name, each] : keywords) add(std::string(nb::str(name).c_str()) + "=", each);
  PyErr_Format(PyExc_TypeError, "the call is %s; got (%s)", takes, got.c_str());
  throw nb::python_error();
}

void refuse_as_python(const char* function, std::initializer_list<std::string_view> parameters,
                      const nb::args& args, const nb::kwargs& keywords) {
  const size_t most = parameters.size();
  if (args.size() > most)
    PyErr_Format(PyExc_TypeError, "%s() takes %s%zu positional argument%s but %zu were given", function,
                 most > 1 ? "from 1 to " : "", most, most > 1 ? "s" : "", args.size());
  for (auto [name, each] : keywords) {
    const nb::str key(name);
    const char* text = key.c_str();
    const auto at =
        static_cast<size_t>(std::ranges::find(parameters, std::string_view(text)) - parameters.begin());
    if (PyErr_Occurred() || (at < most && at >= args.size())) continue;
    PyErr_Format(PyExc_TypeError,
                 at < most ? "%s() got multiple values for argument '%s'"
                           : "%s() got an unexpected keyword argument '%s'",
                 function, text);
  }
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "%s() missing 1 required positional argument: '%s'", function,
                 parameters.begin()->data());
  throw nb::python_error();
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
