// operators.cc: + - * / // % ** @ and comparisons, & | ^ ~ by dtype, and conversions of tensors of one
// element to Python numbers. Same semantics as the ops of the catalogue, except / of integers, which op div
// truncates.
#include "ops/operators.h"

#include "keel/ops.hpp"
#include "ops/op.h"

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
bool is_float(PyObject* tensor) {
  keel_tensor view;
  keel_array_tensor(array_of(tensor), &view);
  auto code_of = [](keel_dt dtype) { return static_cast<uint8_t>(dtype); };
  return view.dtype.code == code_of(KEEL_F32) || view.dtype.code == code_of(KEEL_BF16);
}

/// Both operands as tensors, literals with the dtype of the other operand; empty if one is not convertible.
using Pair = std::array<keel::Tensor, 2>;
std::optional<Pair> as_tensors(PyObject* a, PyObject* b) {
  PyObject* in[] = {a, b};
  std::array<std::optional<keel::Operand>, 2> operands;
  for (size_t k = 0; k < 2; k++) {
    operands[k] = in[k] == Py_None ? std::nullopt : find_operand(in[k]);
    if (!operands[k]) return std::nullopt;
  }
  Pair out;
  for (size_t k = 0; k < 2; k++) {
    const keel::Operand& other = *operands[1 - k];
    bool literal = operands[k]->weak() && other.get();
    out[k] = to_tensor(in[k], literal ? keel::detail::dtype_of_array(other.get()) : 0);
  }
  return out;
}

PyObject* product_of(keel::Tensor x, keel::Tensor y) {
  bool row = x.ndim() == 1, column = y.ndim() == 1;
  if (row) x = keel::reshape(x, {1, x.dim(0)});
  if (column) y = keel::reshape(y, {y.dim(0), 1});
  nb::object a = object_of(x), b = object_of(y);
  auto made = nb::steal(binary<OpId::matmul>(a.ptr(), b.ptr()));
  if (!made.is_valid() || (!row && !column)) return made.release().ptr();
  keel::Tensor z = tensor_of(made.ptr());
  std::vector<keel::Dim> dims;
  for (int64_t d = 0; d < z.ndim(); d++)
    if (!(row && d == z.ndim() - 2) && !(column && d == z.ndim() - 1)) dims.push_back(z.dim(d));
  return wrap(keel::reshape(z, dims));
}
// NumPy's rules: a vector is a row on the left of @ and a column on the right; the dim is removed from the
// result.
PyObject* product(PyObject* a, PyObject* b) {
  if (is_tensor(a) && is_tensor(b) && !is_vector(a) && !is_vector(b)) [[likely]]
    return binary<OpId::matmul>(a, b);
  return guarded([&] {
    std::optional<Pair> both = as_tensors(a, b);
    return both ? product_of((*both)[0], (*both)[1]) : Py_NewRef(Py_NotImplemented);
  });
}

bool is_whole(const keel::Operand& o) {
  if (o.weak()) return o.kind() == keel::detail::Weak::kI32 || o.kind() == keel::detail::Weak::kI64;
  const keel::DtypeRow* row = o.get() ? keel::find_dtype(keel::detail::dtype_of_array(o.get())) : nullptr;
  return row && (row->kind == 'i' || row->kind == 'u');
}
// True division: f32 for integers; different dtypes are an error, as for all ops.
PyObject* divide(PyObject* a, PyObject* b) {
  if (is_float(is_tensor(a) ? a : b)) [[likely]]
    return binary<OpId::div>(a, b);
  return guarded([&] {
    std::array<std::optional<keel::Operand>, 2> in{find_operand(a), find_operand(b)};
    bool whole = in[0] && in[1] && is_whole(*in[0]) && is_whole(*in[1]);
    bool alike =
        whole && (in[0]->weak() || in[1]->weak() ||
                  keel::detail::dtype_of_array(in[0]->get()) == keel::detail::dtype_of_array(in[1]->get()));
    if (!alike) return binary<OpId::div>(a, b);
    nb::object x = object_of(to_tensor(a, KEEL_F32)), y = object_of(to_tensor(b, KEEL_F32));
    return binary<OpId::div>(x.ptr(), y.ptr());
  });
}

char kind_of(PyObject* a, PyObject* b) {  // the kind of the tensor operand
  const keel::DtypeRow* row = keel::find_dtype(tensor_of(is_tensor(a) ? a : b).dtype());
  return row ? row->kind : '?';
}
// The logical op for bool, the bitwise op for integers.
template <OpId logical, OpId bitwise>
PyObject* bits(PyObject* a, PyObject* b) {
  return kind_of(a, b) == 'b' ? binary<logical>(a, b) : binary<bitwise>(a, b);
}
PyObject* invert(PyObject* a) {
  return kind_of(a, a) == 'b' ? unary<OpId::logical_not>(a) : unary<OpId::bit_not>(a);
}
// floor(a / b); integers without a detour through floats.
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
  keel::Tensor t = tensor_of(a);
  need_value(t);
  return reading(t, [&] { return t.item<T>(); });
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
  PyErr_SetString(PyExc_TypeError, "only a tensor of one integer can be used as an index");
  return nullptr;
}

PyNumberMethods number_methods() {
  PyNumberMethods m{};
  m.nb_add = binary<OpId::add>;
  m.nb_subtract = binary<OpId::sub>;
  m.nb_multiply = binary<OpId::mul>;
  m.nb_true_divide = divide;
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
  const std::string type = t.type();
  const bool whole = type[0] == 'i' || type[0] == 'u';
  throw keel::Error(
      KEEL_PRECONDITION,
      "a tensor of a trace has no value yet: " + type +
          " cannot be read, printed or used in an `if` of Python" + (whole ? ", or as a size" : ""),
      std::string(whole ? "use sizes of x.shape, which are part of the trace; " : "") +
          "use keel.cond(p, then, otherwise), keel.while_loop and keel.scan to branch and loop on tensors, "
          "keel.select(p, a, b) for elements; or keel.run_eagerly(True) to run functions on values");
}

}  // namespace keel_python
