// line.cc: the line table of each code object is read once, since a traced op takes less than a microsecond
// and Python finds a line by a linear search in the table.
#include "base/line.h"

#include <frameobject.h>

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/errors.h"

namespace keel_python {

namespace {

/// The lines of a code object, which is kept alive. Converted code is never freed, either.
struct Lines {
  nb::object code;
  const char* file = nullptr;   // null: a file of this package
  std::vector<uint32_t> lines;  // by instruction index
};

std::string utf8(nb::handle text) {
  const char* out = PyUnicode_AsUTF8(text.ptr());
  PyErr_Clear();  // the file name is not valid UTF-8
  return out ? out : "?";
}

std::string of_package() {
  nb::object path = nb::module_::import_("keel").attr("__path__");
  return utf8(nb::object(path[0])) + "/";
}

std::vector<uint32_t> table_of(nb::handle code) {
  std::vector<uint32_t> out;
#if PY_VERSION_HEX >= 0x030b0000
  for (nb::handle row : nb::object(code.attr("co_lines")())) {
    auto end = nb::cast<size_t>(row[1]) / sizeof(uint16_t);
    nb::object line = row[2];
    out.resize(std::max(out.size(), end), line.is_none() ? 0 : nb::cast<uint32_t>(line));
  }
#endif
  return out;
}

Lines made(PyCodeObject* code) {
  static const auto* package = new std::string(of_package());
  static auto* files = new std::set<std::string>;  // never freed: libkeel compares names by address
  Lines out{nb::borrow(reinterpret_cast<PyObject*>(code))};
  std::string file = utf8(code->co_filename);
  if (file.starts_with(*package)) return out;
  out.file = files->insert(std::move(file)).first->c_str();
  out.lines = table_of(out.code);
  return out;
}

const Lines& lines_of(PyCodeObject* code) {
  static auto* known =
      new std::unordered_map<PyCodeObject*, Lines>;  // never freed: the interpreter may end earlier
  static const Lines* last = nullptr;
  if (last && last->code.ptr() == reinterpret_cast<PyObject*>(code)) [[likely]]
    return *last;
  auto found = known->find(code);
  if (found == known->end()) found = known->emplace(code, made(code)).first;
  last = &found->second;
  return *last;
}

uint32_t line_in(PyFrameObject* frame, const Lines& of) {
#if PY_VERSION_HEX >= 0x030b0000
  auto at = static_cast<size_t>(PyFrame_GetLasti(frame)) / sizeof(uint16_t);
  return at < of.lines.size() ? of.lines[at] : 0;
#else
  return static_cast<uint32_t>(PyFrame_GetLineNumber(frame));
#endif
}

const Lines& lines_in(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_DECREF(code);  // the frame holds a reference
  return lines_of(code);
}

// The callback for ops called inside the C++ SDK, or in code of this package on top of it.
void note_from_sdk(keel_trace* trace, const keel::Place&) {
  if (PyGILState_Check()) note_line(trace);  // otherwise noted before the GIL was released
}

}  // namespace

void note_line(keel_trace* trace) noexcept {
  try {
    PyFrameObject* frame = PyEval_GetFrame();
    if (!frame) return;
    const Lines* lines = &lines_in(frame);
    nb::object outer;
    while (!lines->file) {
      outer = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
      frame = reinterpret_cast<PyFrameObject*>(outer.ptr());
      if (!frame) return;
      lines = &lines_in(frame);
    }
    keel_trace_source(trace, lines->file, line_in(frame, *lines));
  } catch (...) {  // the line remains unknown
    PyErr_Clear();
  }
}

void install_line() { keel::detail::note_place = note_from_sdk; }

}  // namespace keel_python
