// dim.cc: keel.Dim, a size without a number while a function is traced. It computes as an int: with ints and
// Dims the result is a Dim, with floats a SizeFloat; next to tensors it is a literal. Operations that require
// a number use the size of the call being traced (keel::Dim::number).
#include "values/dim.h"

#include <nanobind/stl/string.h>

#include <cmath>

#include "keel/variable.hpp"

namespace keel_python {

keel::Dim need_dim(nb::handle value) {
  if (nb::isinstance<keel::Dim>(value)) return nb::cast<const keel::Dim&>(value);
  if (!PyIndex_Check(value.ptr())) {
    PyErr_Format(PyExc_TypeError, "a size must be an int or a keel.Dim, not %s",
                 Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
  }
  auto number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number) throw nb::python_error();
  int overflow = 0;
  int64_t size = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow) throw keel::Error(KEEL_RANGE, std::string(nb::str(number).c_str()) + " does not fit in i64");
  return keel::Dim(size);
}

keel::Ints need_ints(nb::handle value) {
  if (PyIndex_Check(value.ptr()) || nb::isinstance<keel::Dim>(value)) {
    keel::Dim one = need_dim(value);
    return one.symbolic() ? keel::Ints(one) : keel::Ints(one.number());
  }
  std::vector<keel::Dim> sizes;
  for (nb::handle each : value) sizes.push_back(need_dim(each));
  return keel::Ints(std::move(sizes));
}

nb::object dim_object(const keel::Dim& dim) {
  if (dim.symbolic()) return nb::cast(dim);
  return nb::int_(dim.number());
}

PyObject* shape_of(keel_array* array) {
  keel_tensor t;
  keel_array_tensor(array, &t);
  auto out = nb::steal(PyTuple_New(t.ndim));
  for (int32_t d = 0; out && d < t.ndim; d++) {
    nb::object size;
    if (t.shape[d] >= 0) {
      size = nb::int_(t.shape[d]);
    } else {
      keel_text* text = nullptr;
      keel::call(keel_array_dim, array, static_cast<int64_t>(d), &text);
      size = dim_object(keel::Dim::parse(keel::take_text(text)));
    }
    PyTuple_SET_ITEM(out.ptr(), d, size.release().ptr());
  }
  return out.release().ptr();
}

namespace {

using keel::Dim;
using keel::OpId;

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }
bool is_dim(nb::handle v) { return nb::isinstance<Dim>(v); }
/// An int of Python or NumPy, not a tensor.
bool is_int(nb::handle v) {
  if (PyLong_Check(v.ptr())) return true;
  return PyIndex_Check(v.ptr()) && !is_tensor(v.ptr()) && !PyObject_HasAttrString(v.ptr(), "__len__");
}
bool is_size(nb::handle v) { return is_dim(v) || is_int(v); }

SizeFloat of_dim(const Dim& d) {
  SizeFloat out;
  keel::detail::Attributes at, to;
  at.dim("of", d.handle());
  keel::Tensor i64 = keel::detail::one(OpId::dim, {}, at, kNowhere);
  keel::Operand operand(i64, kNowhere);
  to.dtype("to", KEEL_F64);
  out.tensor = keel::detail::one(OpId::cast, {&operand}, to, kNowhere);
  out.number = [d] { return static_cast<double>(d.number()); };
  out.zero = [d] { return d.is_zero(); };
  return out;
}
SizeFloat of_float(double v) {
  return {keel::tensor(v, KEEL_F64), [v] { return v; }, [v] { return v == 0; }};
}
/// Empty for objects that are not numbers.
std::optional<SizeFloat> size_float(nb::handle v) {
  if (nb::isinstance<SizeFloat>(v)) return nb::cast<const SizeFloat&>(v);
  if (is_dim(v) && nb::cast<const Dim&>(v).symbolic()) return of_dim(nb::cast<const Dim&>(v));
  if (PyFloat_Check(v.ptr())) return of_float(PyFloat_AS_DOUBLE(v.ptr()));
  if (is_size(v)) return of_float(static_cast<double>(need_dim(v).number()));
  return std::nullopt;
}

void check_divisor(const SizeFloat& b) {
  if (!b.zero()) return;
  PyErr_SetString(PyExc_ZeroDivisionError, "float division by zero");
  throw nb::python_error();
}

using Real = double (*)(double, double);
/// a op b as a value of the trace, in f64 like Python floats.
template <OpId id>
nb::object compute(const SizeFloat& a, const SizeFloat& b, Real real) {
  if (id == OpId::div) check_divisor(b);
  keel::Operand x(a.tensor, kNowhere), y(b.tensor, kNowhere);
  SizeFloat out{keel::detail::one(id, {&x, &y}, {}, kNowhere),
                [a, b, real] { return real(a.number(), b.number()); }, nullptr};
  out.zero = [a, b, number = out.number] {
    if (id == OpId::mul) return a.zero() || b.zero();
    return id == OpId::div || id == OpId::pow ? a.zero() : number() == 0;
  };
  return nb::cast(std::move(out));
}
template <OpId id, bool turned>
nb::object floating(nb::handle a, nb::handle b, Real real) {
  std::optional<SizeFloat> x = size_float(a), y = size_float(b);
  if (!x || !y) return not_implemented();
  return turned ? compute<id>(*y, *x, real) : compute<id>(*x, *y, real);
}
double add(double a, double b) { return a + b; }
double subtract(double a, double b) { return a - b; }
double multiply(double a, double b) { return a * b; }
double divide(double a, double b) { return a / b; }
double power(double a, double b) { return std::pow(a, b); }

template <OpId id, bool turned>
nb::object arithmetic(nb::handle a, nb::handle b, Dim (*op)(const Dim&, const Dim&), Real real) {
  if (is_dim(a) && is_size(b)) {
    Dim x = need_dim(a), y = need_dim(b);
    return dim_object(turned ? op(y, x) : op(x, y));
  }
  return floating<id, turned>(a, b, real);
}
Dim add_sizes(const Dim& a, const Dim& b) { return a + b; }
Dim subtract_sizes(const Dim& a, const Dim& b) { return a - b; }
Dim multiply_sizes(const Dim& a, const Dim& b) { return a * b; }

/// The comparison of Python numbers, with the sizes of the call being traced.
template <class T>
nb::object as_number(const T& a) {
  if constexpr (std::is_same_v<T, Dim>)
    return nb::int_(a.number());
  else
    return nb::float_(a.number());
}
nb::object plain(nb::handle v) {
  if (is_dim(v)) return as_number(nb::cast<const Dim&>(v));
  return nb::isinstance<SizeFloat>(v) ? as_number(nb::cast<const SizeFloat&>(v)) : nb::borrow(v);
}
template <class T>
auto with_numbers(const char* op) {
  return [op](const T& a, nb::handle b) {
    bool number = is_size(b) || PyFloat_Check(b.ptr()) || nb::isinstance<SizeFloat>(b);
    return number ? as_number(a).attr(op)(plain(b)) : not_implemented();
  };
}

/// A Dim for ints; for floats the operation on SizeFloats.
template <bool turned>
auto whole(Dim (*op)(const Dim&, const Dim&), const char* otherwise) {
  return [=](const Dim& a, nb::handle b) {
    if (!is_size(b)) return with_numbers<Dim>(otherwise)(a, b);
    Dim y = need_dim(b);
    const Dim &upper = turned ? y : a, &lower = turned ? a : y;
    if (lower.is_zero()) {
      PyErr_SetString(PyExc_ZeroDivisionError, "integer division or modulo by zero");
      throw nb::python_error();
    }
    return dim_object(op(upper, lower));
  };
}
Dim quotient(const Dim& a, const Dim& b) { return a / b; }
Dim rest(const Dim& a, const Dim& b) { return a % b; }

nb::object raise_to(nb::handle a, nb::handle b) {
  constexpr int64_t kMostFactors = 8;
  bool integer = is_dim(a) && is_int(b);
  int64_t n = integer ? need_dim(b).number() : 0;
  if (integer && n >= 0 && n <= kMostFactors) {
    Dim out = 1;
    for (int64_t k = 0; k < n; k++) out = out * nb::cast<const Dim&>(a);
    return dim_object(out);
  }
  if (!is_int(b) && !PyFloat_Check(b.ptr())) {
    bool number = is_dim(b) || nb::isinstance<SizeFloat>(b);
    return number ? plain(a).attr("__pow__")(plain(b)) : not_implemented();
  }
  std::optional<SizeFloat> x = size_float(a), y = size_float(b);
  if (y->number() < 0) check_divisor(*x);
  return compute<OpId::pow>(*x, *y, power);
}

/// Types that equal no number; other types are compared, since False would be a guess.
bool never_equal(PyObject* o) {
  return o == Py_None || PyUnicode_Check(o) || PyBytes_Check(o) || PyTuple_Check(o) || PyList_Check(o) ||
         PyDict_Check(o) || PyAnySet_Check(o) || PyType_Check(o);
}
template <class T>
nb::object equal(const T& a, nb::handle b) {
  if constexpr (std::is_same_v<T, Dim>)
    if (is_size(b)) return nb::bool_(a == need_dim(b));
  if (never_equal(b.ptr()) || is_tensor(b.ptr()) || nb::isinstance<keel::Variable>(b))
    return not_implemented();
  nb::object number = as_number(a), other = plain(b);
  return nb::steal(PyObject_RichCompare(number.ptr(), other.ptr(), Py_EQ));
}

template <class T>
void define_arithmetic(nb::class_<T>& type) {
  auto def = [&]<OpId id>(std::integral_constant<OpId, id>, const char* name, const char* turned,
                          Dim (*op)(const Dim&, const Dim&), Real real) {
    type.def(name, [=](nb::handle a, nb::handle b) { return arithmetic<id, false>(a, b, op, real); });
    type.def(turned, [=](nb::handle a, nb::handle b) { return arithmetic<id, true>(a, b, op, real); });
  };
  def(std::integral_constant<OpId, OpId::add>(), "__add__", "__radd__", add_sizes, add);
  def(std::integral_constant<OpId, OpId::sub>(), "__sub__", "__rsub__", subtract_sizes, subtract);
  def(std::integral_constant<OpId, OpId::mul>(), "__mul__", "__rmul__", multiply_sizes, multiply);
  type.def("__truediv__", [](nb::handle a, nb::handle b) { return floating<OpId::div, false>(a, b, divide); })
      .def("__rtruediv__", [](nb::handle a, nb::handle b) { return floating<OpId::div, true>(a, b, divide); })
      .def("__pow__", raise_to)
      .def("__rpow__", with_numbers<T>("__rpow__"))
      .def("__divmod__", with_numbers<T>("__divmod__"))
      .def("__rdivmod__", with_numbers<T>("__rdivmod__"))
      .def("__float__", [](const T& a) { return static_cast<double>(a.number()); })
      .def("__hash__", [](const T& a) { return nb::hash(as_number(a)); });
  type.attr("__array_ufunc__") = nb::none();  // makes NumPy defer to these operators
}

}  // namespace

void install_dim(nb::module_& m) {
  nb::class_<Dim> dim(m, "Dim", "A size of a trace, as in x.shape; usable as an int.");
  define_arithmetic(dim);
  dim.def("__floordiv__", whole<false>(quotient, "__floordiv__"))
      .def("__rfloordiv__", whole<true>(quotient, "__rfloordiv__"))
      .def("__mod__", whole<false>(rest, "__mod__"))
      .def("__rmod__", whole<true>(rest, "__rmod__"))
      .def("__neg__", [](const Dim& d) { return dim_object(-d); })
      .def("__pos__", [](const Dim& d) { return dim_object(d); })
      .def("__abs__", [](const Dim& d) { return dim_object(max(d, -d)); })
      .def("__bool__", [](const Dim& d) { return d != 0; })
      .def("__index__", [](const Dim& d) { return d.number(); })
      .def("__eq__", equal<Dim>)
      .def("__str__", &Dim::text)
      .def("__repr__", &Dim::text);
  for (const char* op : {"__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__", "__lshift__",
                         "__rlshift__", "__rshift__", "__rrshift__"})
    dim.def(op, with_numbers<Dim>(op));
  nb::class_<SizeFloat> real(m, "SizeFloat",
                             "A float computed from sizes by a trace; a literal next to tensors.");
  define_arithmetic(real);
  for (const char* op :
       {"__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__lt__", "__le__", "__gt__", "__ge__"})
    real.def(op, with_numbers<SizeFloat>(op));
  real.def("__eq__", equal<SizeFloat>)
      .def("__neg__", [](nb::handle a) { return floating<OpId::mul, false>(a, nb::float_(-1.0), multiply); })
      .def("__int__", [](const SizeFloat& a) { return nb::int_(nb::float_(a.number())); })
      .def("__bool__", [](const SizeFloat& a) { return !a.zero(); })
      .def("__repr__", [](const SizeFloat& a) { return "<a float of sizes, " + a.tensor.type() + ">"; });
  m.def("dim_by_name", [](const std::string& name) { return dim_object(keel::dim(name)); });
  m.def("dim_max", [](nb::handle a, nb::handle b) { return dim_object(max(need_dim(a), need_dim(b))); });
  m.def("dim_min", [](nb::handle a, nb::handle b) { return dim_object(min(need_dim(a), need_dim(b))); });
}

}  // namespace keel_python
