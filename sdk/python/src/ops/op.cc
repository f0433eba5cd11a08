// op.cc: a Python function for each op of the catalogue, read from ops_table.inc.
//
// How to read it: Row is one op, Arguments maps Python arguments to parameters, Call converts and applies.
// Functions use the CPython API: ops without attributes take the fast path of op.h, all others call().
#include "ops/op.h"

#include <array>
#include <deque>

#include "keel/ints.hpp"
#include "values/dim.h"
#include "values/dtype.h"

namespace keel_python {

namespace {

enum class Kind : uint8_t { kOperand, kMany, kFlag, kF64, kText, kDtype, kI64, kDim, kI64s, kDims };
struct Param {
  const char *name, *type;
  Kind kind;
  const char* fallback;  // the default in Python syntax; NULL: none
  constexpr bool required() const { return !fallback; }
};
struct Row {
  keel::OpId id;
  const char *doc, *patterns;  // patterns: of the results
  const char* types;           // "T: f32 f64; I: i32 i64"
  int results;                 // if variable: minus the number of the parameter with one entry per result
  std::array<Param, 12> params;
  constexpr size_t size() const {
    size_t n = 0;
    while (n < params.size() && params[n].name) n++;
    return n;
  }
  constexpr size_t operands() const {
    size_t n = 0;
    while (n < params.size() && params[n].name && params[n].kind <= Kind::kMany) n++;
    return n;
  }
  constexpr const char* name() const { return keel::detail::info(id).name; }
};
constexpr Row kRows[] = {
#include "ops_table.inc"
};

[[noreturn]] void type_error(const char* format, const char* op, const char* what) {
  PyErr_Format(PyExc_TypeError, format, op, what);
  throw nb::python_error();
}

/// The argument of each parameter; NULL if omitted.
struct Arguments {
  std::array<PyObject*, 12> at{};

  Arguments(const Row& row, PyObject* const* args, Py_ssize_t given, PyObject* keywords) {
    size_t n = row.size(), positional = static_cast<size_t>(given);
    if (positional > n) type_error("%s() takes at most %s arguments", row.name(), std::to_string(n).c_str());
    std::copy(args, args + positional, at.begin());
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); k++)
      put(row, n, PyTuple_GET_ITEM(keywords, k), args[given + k]);
    for (size_t k = 0; k < n; k++)
      if (row.params[k].required() && !at[k])
        type_error("%s() needs the argument '%s'", row.name(), row.params[k].name);
  }

 private:
  void put(const Row& row, size_t n, PyObject* keyword, PyObject* value) {
    for (size_t k = 0; k < n; k++) {
      if (PyUnicode_CompareWithASCIIString(keyword, row.params[k].name) != 0) continue;
      if (at[k]) type_error("%s() got the argument '%s' twice", row.name(), row.params[k].name);
      at[k] = value;
      return;
    }
    std::string known;
    for (size_t k = 0; k < n; k++) known += (k ? ", " : "") + std::string(row.params[k].name);
    known = std::string("'") + PyUnicode_AsUTF8(keyword) + "'; it takes (" + known + ")";
    type_error("%s() has no argument %s", row.name(), known.c_str());
  }
};

/// The kind of a KEEL_INVALID: unsupported or different dtypes, or dims.
class Faults {
 public:
  Faults(const Row& row, keel::detail::In in)
      : groups_(keel::detail::info(row.id).groups), types_(row.types), in_(in) {}
  Fault fault() const {
    for (size_t k = 0; k < in_.size(); k++)
      if (group(k) != 'a' && wrong(k)) return Fault::kDtype;
    return Fault::kShape;
  }

 private:
  char group(size_t k) const { return groups_[std::min(k, groups_.size() - 1)]; }
  // The dtype of the first tensor of the group.
  keel_dt wanted(char of) const {
    for (size_t k = 0; k < in_.size(); k++)
      if (group(k) == of && in_[k]->get()) return keel::detail::dtype_of_array(in_[k]->get());
    return 0;
  }
  bool wrong(size_t k) const {
    keel_dt want = group(k) == 'b'   ? keel_dt{KEEL_BOOL}
                   : group(k) == 'u' ? keel_dt{KEEL_U64}
                                     : wanted(group(k));
    if (!want && in_[k]->weak()) return in_[k]->kind() == Weak::kFloat && !takes(group(k), KEEL_F32);
    if (!want || (!in_[k]->get() && !in_[k]->weak())) return false;
    if (in_[k]->weak()) return !has_place(in_[k]->kind(), want);
    return keel::detail::dtype_of_array(in_[k]->get()) != want || !takes(group(k), want);
  }
  bool takes(char of, keel_dt dtype) const {
    size_t from = types_.find(std::string(1, of) + ":");
    if (from == std::string_view::npos) return true;
    std::string list = std::string(types_.substr(from + 2, types_.find(';', from) - from - 2)) + " ";
    return list.find(" " + std::string(keel::dtype_name(dtype)) + " ") != std::string::npos;
  }
  using Weak = keel::detail::Weak;
  std::string_view groups_, types_;
  keel::detail::In in_;
};

bool any_big(keel::detail::In in) {
  return std::any_of(in.begin(), in.end(),
                     [](const keel::Operand* o) { return o->get() && is_big(o->get()); });
}

/// Releases the GIL, unless it is a small op without attributes.
void run(const Row& row, keel::detail::In in, const keel::detail::Attributes& attributes,
         std::span<keel_array*> out) {
  auto apply = [&] { keel::detail::apply(row.id, in, attributes, out, kNowhere); };
  try {
    note_line();
    if (attributes.empty() && !any_big(in))
      apply();
    else
      without_gil(apply);
  } catch (const keel::Error& e) {
    // Binding comes first and checks attributes only.
    auto said = [&](const char* text) {
      return std::string_view(e.what()).find(text) != std::string_view::npos;
    };
    if (e.code() != KEEL_INVALID || said(": attribute ") || said("does not fit in") || said("must be given"))
      throw;
    throw FaultyCall(e, Faults(row, in).fault());
  }
}

class Call {
 public:
  Call(const Row& row, const Arguments& args) : row_(row) {
    lists_.reserve(row.params.size());
    operands_.reserve(row.params.size());
    for (size_t k = 0; k < row.size(); k++) take(row.params[k], args.at[k]);
    for (const keel::Operand& o : operands_) in_.push_back(&o);
  }

  PyObject* run(const Arguments& args) {
    bool each = row_.results < 0;
    size_t n = each ? list_at(args, -row_.results) : static_cast<size_t>(row_.results);
    std::vector<keel_array*> out(n);
    keel::detail::In in({});
    static_cast<std::span<const keel::Operand* const>&>(in) = in_;
    keel_python::run(row_, in, attributes_, out);
    return row_.results == 1 ? wrap(out[0]) : tuple(out);
  }

 private:
  static PyObject* tuple(const std::vector<keel_array*>& made) {
    if (made.empty()) return Py_NewRef(Py_None);
    PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(made.size()));
    for (size_t k = 0; out && k < made.size(); k++)
      PyTuple_SET_ITEM(out, static_cast<Py_ssize_t>(k), wrap(made[k]));
    return out;
  }
  size_t list_at(const Arguments& args, int param) const {
    Py_ssize_t n = PySequence_Size(args.at[static_cast<size_t>(param)]);
    if (n >= 0) return static_cast<size_t>(n);
    PyErr_Clear();
    type_error("%s(): the argument '%s' must be a list with an entry for each result", row_.name(),
               row_.params[static_cast<size_t>(param)].name);
  }

  void take(const Param& p, PyObject* value) {
    if (p.kind == Kind::kOperand) {
      operands_.push_back(need_operand(value ? value : Py_None, row_.name(), p.name));
    } else if (p.kind == Kind::kMany) {
      for (nb::handle each : nb::handle(value)) operands_.push_back(need_operand(each, row_.name(), p.name));
    } else if (value && value != Py_None) {
      attribute(p, value);
    }
  }
  void attribute(const Param& p, nb::handle value) {
    switch (p.kind) {
      case Kind::kFlag:
        return attributes_.flag(p.name, number<bool>(p, value));
      case Kind::kF64:
        return attributes_.f64(p.name, number<double>(p, value));
      case Kind::kI64:
        return attributes_.i64(p.name, number<int64_t>(p, value));
      case Kind::kDtype:
        return attributes_.dtype(p.name, need_dtype(value));
      case Kind::kDim:
        return attributes_.dim(p.name, need_dim(value).handle());
      case Kind::kText:
        return attributes_.text(p.name, text(p, value));
      default:
        break;
    }
    bool dims = p.kind == Kind::kDims;
    keel::detail::ints(attributes_, p.name, dims ? KEEL_ATTR_DIMS : KEEL_ATTR_I64S,
                       lists_.emplace_back(need_ints(value)));
  }
  template <class T>
  T number(const Param& p, nb::handle value) const {
    T out{};
    if (nb::try_cast<T>(value, out)) return out;
    type_error("%s(): the argument '%s' has the wrong type", row_.name(), p.name);
  }
  const char* text(const Param& p, nb::handle value) const {
    const char* out = PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8(value.ptr()) : nullptr;
    return out ? out : (type_error("%s(): the argument '%s' must be a string", row_.name(), p.name), nullptr);
  }

  const Row& row_;
  std::vector<keel::Operand> operands_;
  std::vector<const keel::Operand*> in_;
  std::vector<keel::Ints> lists_;  // borrowed by the attributes
  keel::detail::Attributes attributes_;
};

PyObject* call(const Row& row, PyObject* const* args, Py_ssize_t n, PyObject* keywords) noexcept {
  return guarded([&] {
    Arguments given(row, args, n, keywords);
    return Call(row, given).run(given);
  });
}

const Row& row_of(keel::OpId id) {  // both lists have the same order
  auto before = [](const Row& row, keel::OpId other) { return row.id < other; };
  return *std::lower_bound(std::begin(kRows), std::end(kRows), id, before);
}

constexpr bool plain(const Row& row, size_t operands) {
  return row.results == 1 && row.size() >= operands && row.operands() == operands &&
         row.params[operands - 1].required() && row.params[0].kind == Kind::kOperand &&
         (row.size() == operands || !row.params[operands].required());
}
template <size_t at>
PyObject* entry(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  constexpr const Row& row = kRows[at];
  if constexpr (plain(row, 2)) {
    if (n == 2 && !keywords && is_tensor(args[0]) && is_tensor(args[1])) return apply_quick<2>(row.id, args);
  } else if constexpr (plain(row, 1)) {
    if (n == 1 && !keywords && is_tensor(args[0])) return apply_quick<1>(row.id, args);
  }
  return call(row, args, n, keywords);
}

/// "add(a, b)\n--\n\n" and the text of the catalogue; never freed.
const char* docstring(const Row& row) {
  std::string call, operands, attributes;
  for (size_t k = 0; k < row.size(); k++) {
    const Param& p = row.params[k];
    call += (k ? ", " : "") + std::string(p.name) + (p.fallback ? std::string("=") + p.fallback : "");
    std::string& list = p.kind <= Kind::kMany ? operands : attributes;
    list += (list.empty() ? "" : "; ") + std::string(p.name) + ": " + p.type;
  }
  std::string out = std::string(row.name()) + "(" + call + ")\n--\n\n";
  if (*row.doc) out += std::string(row.doc) + "\n\n";
  auto line = [&](const char* head, const std::string& said) {
    if (!said.empty()) out += head + said + "\n";
  };
  line("Operands: ", operands);
  line("Attributes: ", attributes);
  line("Results: ", row.patterns);
  line("Dtypes: ", row.types);
  line("Raises ", operands.empty() ? "InvalidError for invalid attributes."
                                   : "ShapeError for mismatched dims, DTypeError for other dtypes.");
  static std::deque<std::string> kept;
  return kept.emplace_back(std::move(out)).c_str();
}

template <size_t... at>
auto methods(std::index_sequence<at...>) {
  return std::array<PyMethodDef, sizeof...(at)>{
      PyMethodDef{kRows[at].name(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry<at>)),
                  METH_FASTCALL | METH_KEYWORDS, docstring(kRows[at])}...};
}

}  // namespace

PyObject* apply_plain(keel::OpId id, PyObject* const* in, size_t n) noexcept {
  return call(row_of(id), in, static_cast<Py_ssize_t>(n), nullptr);
}

PyObject* apply_operator(keel::OpId id, PyObject* const* in, size_t n) noexcept {
  return guarded([&]() -> PyObject* {
    std::array<std::optional<keel::Operand>, 2> operands;
    for (size_t k = 0; k < n; k++) {
      operands[k] = find_operand(in[k]);
      if (!operands[k] || in[k] == Py_None) return Py_NewRef(Py_NotImplemented);
    }
    keel_array* out = nullptr;
    const keel::Operand* all[] = {&*operands[0], n == 2 ? &*operands[1] : nullptr};
    keel::detail::In given({});
    static_cast<std::span<const keel::Operand* const>&>(given) = {all, n};
    run(row_of(id), given, {}, {&out, 1});
    return wrap(out);
  });
}

void install_ops(nb::module_& m) {
  static auto all = methods(std::make_index_sequence<std::size(kRows)>());
  nb::str module("keel");
  for (PyMethodDef& method : all)
    m.attr(method.ml_name) = nb::steal(PyCFunction_NewEx(&method, nullptr, module.ptr()));
}

}  // namespace keel_python
