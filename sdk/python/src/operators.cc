// operators.cc: + - * / // % ** @ and comparisons, & | ^ ~ by the dtype, and tensors of one element as Python
// numbers. They mean what the ops of the catalogue mean: / of integers truncates.
#include "operators.h"

#include "keel/ops.hpp"
#include "op.h"

namespace keel_python {

namespace {

using keel::OpId;

template <OpId id>
PyObject* unary(PyObject* a) {
  return apply_quick<1>(id, &a);
}
template <OpId id>
PyObject* binary(PyObject* a, PyObject* b) {
  PyObject* in[] = {a, b};
  return apply_quick<2>(id, in);
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) return Py_NewRef(Py_NotImplemented);
  return binary<OpId::pow>(a, b);
}

bool is_vector(PyObject* o) {
  keel_tensor view;
  if (!is_tensor(o)) return false;
  keel_array_tensor(array_of(o), &view);
  return view.ndim == 1;
}
// As NumPy has it: a vector is a row before @ and a column behind it, and the dim goes again.
PyObject* product(PyObject* a, PyObject* b) {
  bool row = is_vector(a), column = is_vector(b);
  if ((!row && !column) || !is_tensor(a) || !is_tensor(b)) [[likely]]
    return binary<OpId::matmul>(a, b);
  return guarded([&] {
    keel::Tensor x = tensor_of(a), y = tensor_of(b);
    if (row) x = keel::reshape(x, {1, x.dim(0)});
    if (column) y = keel::reshape(y, {y.dim(0), 1});
    keel::Tensor z = keel::matmul(x, y);
    std::vector<keel::Dim> dims;
    for (int64_t d = 0; d < z.ndim(); d++)
      if (!(row && d == z.ndim() - 2) && !(column && d == z.ndim() - 1)) dims.push_back(z.dim(d));
    return wrap(keel::reshape(z, dims));
  });
}

char kind_of(PyObject* a, PyObject* b) {  // of the operand that is a tensor
  const keel::DtypeRow* row = keel::find_dtype(tensor_of(is_tensor(a) ? a : b).dtype());
  return row ? row->kind : '?';
}
// Of bools the logical op, of integers that of their bits.
template <OpId logical, OpId bitwise>
PyObject* bits(PyObject* a, PyObject* b) {
  return kind_of(a, b) == 'b' ? binary<logical>(a, b) : binary<bitwise>(a, b);
}
PyObject* invert(PyObject* a) {
  return kind_of(a, a) == 'b' ? unary<OpId::logical_not>(a) : unary<OpId::bit_not>(a);
}
// floor(a / b); of integers without a float between.
PyObject* floor_divide(PyObject* a, PyObject* b) {
  bool real = kind_of(a, b) == 'f';
  auto rest = nb::steal(real ? Py_NewRef(Py_None) : binary<OpId::mod>(a, b));
  if (!rest.is_valid() || rest.ptr() == Py_NotImplemented) return rest.release().ptr();
  auto whole = nb::steal(real ? Py_NewRef(a) : binary<OpId::sub>(a, rest.ptr()));
  if (!whole.is_valid()) return nullptr;
  auto out = nb::steal(binary<OpId::div>(whole.ptr(), b));
  if (!real || !out.is_valid() || out.ptr() == Py_NotImplemented) return out.release().ptr();
  return unary<OpId::floor>(out.ptr());
}

PyObject* positive(PyObject* a) { return Py_NewRef(a); }

template <class T>
T item(PyObject* a) {
  return need_value(tensor_of(a)).item<T>();
}
int truth(PyObject* a) {
  return guarded([&] { return static_cast<int>(item<bool>(a)); });
}
PyObject* as_float(PyObject* a) {
  return guarded([&] { return PyFloat_FromDouble(item<double>(a)); });
}
PyObject* as_int(PyObject* a) {
  return guarded([&] {
    if (tensor_of(a).dtype() == KEEL_U64) return PyLong_FromUnsignedLongLong(item<uint64_t>(a));
    if (kind_of(a, a) == 'f') return PyLong_FromDouble(item<double>(a));
    return PyLong_FromLongLong(item<int64_t>(a));
  });
}
PyObject* as_index(PyObject* a) {
  if (char kind = kind_of(a, a); kind == 'i' || kind == 'u') return as_int(a);
  PyErr_SetString(PyExc_TypeError, "only a tensor of one integer can be an index");
  return nullptr;
}

PyNumberMethods number_methods() {
  PyNumberMethods m{};
  m.nb_add = binary<OpId::add>;
  m.nb_subtract = binary<OpId::sub>;
  m.nb_multiply = binary<OpId::mul>;
  m.nb_true_divide = binary<OpId::div>;
  m.nb_floor_divide = floor_divide;
  m.nb_remainder = binary<OpId::mod>;
  m.nb_power = power;
  m.nb_matrix_multiply = product;
  m.nb_and = bits<OpId::logical_and, OpId::bit_and>;
  m.nb_or = bits<OpId::logical_or, OpId::bit_or>;
  m.nb_xor = bits<OpId::logical_xor, OpId::bit_xor>;
  m.nb_lshift = binary<OpId::shift_left>;
  m.nb_rshift = binary<OpId::shift_right>;
  m.nb_negative = unary<OpId::neg>;
  m.nb_positive = positive;
  m.nb_absolute = unary<OpId::abs>;
  m.nb_invert = invert;
  m.nb_bool = truth;
  m.nb_int = as_int;
  m.nb_float = as_float;
  m.nb_index = as_index;
  return m;
}

}  // namespace

PyNumberMethods tensor_number = number_methods();

PyObject* tensor_compare(PyObject* a, PyObject* b, int how) {
  static constexpr OpId kOps[] = {OpId::less,      OpId::less_equal, OpId::equal,
                                  OpId::not_equal, OpId::greater,    OpId::greater_equal};
  PyObject* in[] = {a, b};
  return apply_quick<2>(kOps[how], in);  // Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE
}

const keel::Tensor& need_value(const keel::Tensor& t) {
  if (!t.symbolic()) return t;
  throw keel::Error(
      KEEL_PRECONDITION,
      "a tensor of a trace has no value yet: " + t.type() +
          " cannot be read, printed or decide an `if` of Python",
      "keel.cond(p, then, otherwise), keel.while_loop and keel.scan branch and loop on tensors, "
      "keel.select(p, a, b) chooses by element; keel.run_eagerly(True) runs functions on values");
}

}  // namespace keel_python
