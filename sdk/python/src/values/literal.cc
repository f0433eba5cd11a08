// literal.cc: Python objects as operands and tensors.
//
// How to read it: number() is one number, Flat flattens nested lists of numbers; then operands and tensors.
#include "values/literal.h"

#include "keel/variable.hpp"
#include "values/dim.h"
#include "values/foreign.h"

namespace keel_python {

namespace {

using keel::detail::Weak;

/// A Python number as a weak one. np.float64 is a subclass of float: as an operand it is weak, too, but not
/// if a tensor is made from it (exact).
std::optional<Weak> number(PyObject* o, bool exact) {
  if (PyBool_Check(o)) return Weak(o == Py_True);
  if (exact ? PyFloat_CheckExact(o) : PyFloat_Check(o)) return Weak(PyFloat_AS_DOUBLE(o));
  if (!PyLong_Check(o)) return std::nullopt;
  int overflow = 0;
  int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow)
    throw keel::Error(KEEL_INVALID,
                      "the literal " + std::string(nb::str(nb::handle(o)).c_str()) + " does not fit in i64",
                      "use an array: keel.array(numpy.uint64(...))");
  return std::in_range<int32_t>(v) ? Weak(static_cast<int32_t>(v)) : Weak(v);
}

/// A nested list or tuple of numbers, row-major. `foreign`: it contains other objects.
struct Flat {
  explicit Flat(bool exact) : exact(exact) {}
  bool exact;
  std::vector<int64_t> shape;
  std::vector<Weak> values;
  bool foreign = false;

  void add(PyObject* o, size_t depth) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) return add_number(o, depth);
    if (depth == KEEL_MAX_RANK)
      throw keel::Error(KEEL_INVALID, "a literal is nested deeper than " + std::to_string(depth) + " dims");
    auto n = static_cast<int64_t>(PySequence_Fast_GET_SIZE(o));
    if (depth == shape.size() && values.empty() && !closed)
      shape.push_back(n);
    else if (depth >= shape.size() || shape[depth] != n)
      uneven(depth, n);
    for (int64_t i = 0; i < n && !foreign; i++) add(PySequence_Fast_GET_ITEM(o, i), depth + 1);
    closed = true;
  }

 private:
  void add_number(PyObject* o, size_t depth) {
    std::optional<Weak> v = number(o, exact);
    if (!v) {
      foreign = true;
    } else {
      if (depth != shape.size()) uneven(depth, -1);
      values.push_back(*v);
    }
  }
  std::string another(size_t depth) const {
    return depth < shape.size() ? std::to_string(shape[depth]) : "is a number";
  }
  [[noreturn]] void uneven(size_t depth, int64_t n) const {
    throw keel::Error(KEEL_INVALID,
                      "rows of a literal differ: at depth " + std::to_string(depth) +
                          (n < 0 ? " one is a number, another a list"
                                 : " one has " + std::to_string(n) + " entries, another " + another(depth)));
  }
  bool closed = false;  // a row is complete, so the shape is known
};

bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

std::optional<keel::Literal> literal(PyObject* o, bool exact) {
  if (std::optional<Weak> v = number(o, exact)) return keel::Literal::of({}, {*v});
  if (!is_list(o)) return std::nullopt;
  Flat flat(exact);
  flat.add(o, 0);
  if (flat.foreign) return std::nullopt;
  return keel::Literal::of(std::move(flat.shape), std::move(flat.values));
}

/// An operand that owns its tensor.
struct OwnedTensor {
  keel::Tensor tensor;
  operator keel::Tensor() const { return tensor; }
};

keel::Operand weak_operand(const Weak& v) {
  switch (v.kind) {
    case Weak::kBool:
      return keel::Operand(v.i != 0, kNowhere);
    case Weak::kI32:
      return keel::Operand(static_cast<int32_t>(v.i), kNowhere);
    case Weak::kI64:
      return keel::Operand(v.i, kNowhere);
    default:
      return keel::Operand(v.f, kNowhere);
  }
}

std::optional<keel::Operand> size_operand(nb::handle value) {
  if (nb::isinstance<keel::Dim>(value)) return keel::Operand(nb::cast<const keel::Dim&>(value), kNowhere);
  if (!nb::isinstance<SizeFloat>(value)) return std::nullopt;
  return keel::Operand::computed(nb::cast<const SizeFloat&>(value).tensor, kNowhere);
}

/// The tensor of an object or of the arrays in a list; empty if there is none.
keel::Tensor found_tensor(nb::handle value) {
  if (nb::isinstance<keel::Variable>(value)) return nb::cast<const keel::Variable&>(value).value();
  if (is_list(value.ptr())) {  // of arrays: stacked by NumPy
    nb::object stacked = call_python(nb::object(nb::module_::import_("keel.foreign").attr("stacked")), value);
    return is_tensor(stacked.ptr()) ? tensor_of(stacked.ptr()) : from_foreign(stacked, true);
  }
  return from_foreign(value, true);
}

}  // namespace

std::optional<keel::Operand> find_operand(nb::handle value) {
  PyObject* o = value.ptr();
  if (is_tensor(o)) return keel::Operand(OwnedTensor{tensor_of(o)}, kNowhere);
  if (value.is_none()) return keel::Operand(keel::None{}, kNowhere);
  if (std::optional<Weak> v = number(o, false)) return weak_operand(*v);
  if (std::optional<keel::Literal> v = literal(o, false)) return keel::Operand(*v, kNowhere);
  if (std::optional<keel::Operand> of_sizes = size_operand(value)) return of_sizes;
  keel::Tensor t = found_tensor(value);
  if (t.empty()) return std::nullopt;
  return keel::Operand(OwnedTensor{t}, kNowhere);
}

keel::Operand need_operand(nb::handle value, const char* op, const char* parameter) {
  return value.is_none() ? keel::Operand(keel::None{}, kNowhere) : need_value(value, op, parameter);
}

keel::Operand need_value(nb::handle value, const char* op, const char* parameter) {
  if (!value.is_none())
    if (std::optional<keel::Operand> found = find_operand(value)) return *std::move(found);
  PyErr_Format(PyExc_TypeError, "%s(): %s must be a tensor, a number or a list of numbers, not %s", op,
               parameter, Py_TYPE(value.ptr())->tp_name);
  throw nb::python_error();
}

bool has_place(Weak::Kind kind, keel_dt dtype) {
  char want = keel::find_dtype(dtype)->kind;
  return (want == 'b') == (kind == Weak::kBool) && (want == 'f' || kind != Weak::kFloat);
}

keel::Tensor to_tensor(nb::handle value, keel_dt dtype) {
  if (std::optional<keel::Literal> v = literal(value.ptr(), true)) {
    if (!dtype) dtype = v->dtype();
    try {
      return keel::tensor(*v, dtype);
    } catch (const keel::Error& e) {
      throw FaultyCall(e, has_place(v->kind(), dtype) ? Fault::kOther : Fault::kDtype);
    }
  }
  if (std::optional<keel::Operand> of_sizes = size_operand(value)) {
    if (!dtype) dtype = of_sizes->kind() == Weak::kFloat ? KEEL_F32 : KEEL_I32;
    return keel::Tensor(of_sizes->settle(keel::detail::here().context(), dtype));
  }
  keel::Tensor t = is_tensor(value.ptr()) ? tensor_of(value.ptr()) : found_tensor(value);
  if (t.empty()) {
    PyErr_Format(PyExc_TypeError, "%s cannot be converted to a tensor", Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
  }
  if (!dtype || t.dtype() == dtype) return t;
  keel::Operand operand(t, kNowhere);
  keel::detail::Attributes at;
  at.dtype("to", dtype);
  return keel::detail::one(keel::OpId::cast, {&operand}, at, kNowhere);
}

}  // namespace keel_python
