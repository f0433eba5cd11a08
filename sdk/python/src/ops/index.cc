// index.cc: indexing with NumPy's syntax: t[1], t[-1], t[0:6:2], t[::-1], t[..., 0], t[:, None],
// t[[0, 2]], t[other], t[mask]. Implemented with the ops gather, slice, reverse, reshape.
//
// How to read it: each index applies to the current dim and returns the number of dims that it keeps.
#include "ops/index.h"

#include <algorithm>

#include "keel/index.hpp"
#include "values/dim.h"
#include "values/literal.h"

namespace keel_python {

namespace {

using keel::Tensor;

keel::Operand at(const Tensor& t) { return keel::Operand(t, kNowhere); }

constexpr int64_t kFar = int64_t{1} << 60;  // beyond any dim
std::optional<keel::Dim> bound(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  if (nb::isinstance<keel::Dim>(o)) return need_dim(o);
  if (!PyIndex_Check(o)) {
    PyErr_Format(PyExc_TypeError, "t[...]: the ends and the step of a slice must be integers, not %s",
                 Py_TYPE(o)->tp_name);
    throw nb::python_error();
  }
  int64_t i = PyNumber_AsSsize_t(o, nullptr);  // saturates
  if (i == -1 && PyErr_Occurred()) throw nb::python_error();
  return std::clamp(i, -kFar, kFar);
}

Tensor reversed(const Tensor& t, int64_t dim) {
  return keel::reverse(at(t), {.axes = std::vector<int64_t>{dim}});
}

// Python's rules: a slice with a negative step is a slice of the reversed dim.
Tensor pick_slice(const Tensor& t, nb::handle slice, int64_t dim) {
  auto* s = reinterpret_cast<PySliceObject*>(slice.ptr());
  keel::Slice part{bound(s->start), bound(s->stop), bound(s->step).value_or(1).number()};
  if (part.step == 0) throw keel::Error(KEEL_INVALID, "t[...]: the step of a slice must not be 0");
  if (part.step > 0) return keel::detail::pick_slice(t, {part, kNowhere}, dim);
  keel::Dim size = t.dim(dim);
  auto turned = [&](const keel::Dim& i) {
    return min(max(size - 1 - keel::detail::from_start(i, size), 0), size);
  };
  keel::Dim start = part.start ? turned(*part.start) : 0, stop = part.stop ? turned(*part.stop) : size;
  if (part.start && part.stop) stop = max(start, stop);
  return keel::detail::pick_range(at(reversed(t, dim)), t, dim, start, stop, -part.step);
}

Tensor with_new_dim(const Tensor& t, int64_t dim) {
  std::vector<keel::Dim> shape;
  for (int64_t d = 0; d < t.ndim(); d++) shape.push_back(t.dim(d));
  shape.insert(shape.begin() + dim, keel::Dim(1));
  return keel::reshape(at(t), keel::Ints(std::move(shape)));
}

Tensor pick_many(const Tensor& t, const Tensor& places, int64_t dim) {
  if (char kind = keel::find_dtype(places.dtype())->kind; kind == 'f')
    throw FaultyCall(keel::Error(KEEL_INVALID, "t[...]: indices must be integers, not " + places.type()),
                     Fault::kDtype);
  keel::Operand size(t.dim(dim), kNowhere);
  return keel::gather(at(t), keel::select(keel::less(at(places), 0), keel::add(at(places), size), places),
                      {.axis = dim});
}

bool is_mask(const Tensor& t) { return keel::find_dtype(t.dtype())->kind == 'b'; }

// The elements where the mask, which covers the dims from `dim` on, is true: along one dim.
Tensor pick_true(const Tensor& t, const Tensor& mask, int64_t dim) {
  if (mask.ndim() == 0)
    throw keel::Error(KEEL_INVALID, "t[...]: a bool without dims cannot be an index",
                      "keel.select(condition, t, other) chooses by one bool");
  const int64_t end = dim + mask.ndim();
  std::vector<keel::Dim> shape;
  keel::Dim covered = 1;
  for (int64_t d = dim; d < end; d++) {
    if (!(t.dim(d) == mask.dim(d - dim)))
      throw FaultyCall(
          keel::Error(KEEL_INVALID, "t[...]: dim " + std::to_string(d - dim) + " of the mask is " +
                                        mask.dim(d - dim).text() + ", but dim " + std::to_string(d) +
                                        " of t is " + t.dim(d).text()),
          Fault::kShape);
    covered = covered * t.dim(d);
  }
  for (int64_t d = 0; d < t.ndim(); d++)
    if (d == dim)
      shape.push_back(covered);
    else if (d < dim || d >= end)
      shape.push_back(t.dim(d));
  const Tensor places = keel::nonzero(at(keel::reshape(at(mask), {-1})));
  return keel::gather(at(keel::reshape(at(t), keel::Ints(std::move(shape)))),
                      at(keel::reshape(at(places), {-1})), {.axis = dim});
}

bool is_slice(nb::handle i) { return PySlice_Check(i.ptr()); }
bool is_number(nb::handle i) {
  if (is_tensor(i.ptr()) || !PyIndex_Check(i.ptr()) || PyBool_Check(i.ptr())) return false;
  return PyLong_Check(i.ptr()) || nb::getattr(i, "ndim", nb::int_(0)).equal(nb::int_(0));
}
// Another index: a list or an array of integers.
Tensor places_of(nb::handle i) {
  if (std::optional<keel::Operand> found = find_operand(i)) return to_tensor(i);
  PyErr_Format(
      PyExc_TypeError,
      "t[...]: an index must be an integer, a slice, ..., None, or a list or tensor of integers, not %s",
      Py_TYPE(i.ptr())->tp_name);
  throw nb::python_error();
}

class IndexWalk {
 public:
  IndexWalk(Tensor t, nb::handle indices) : out_(std::move(t)), all_(indices), left_(out_.ndim()) {
    for (nb::handle i : all_) taking_ += width(i);
    if (taking_ > left_)
      throw keel::Error(KEEL_RANGE, std::to_string(taking_) + " indices for " + out_.type());
  }
  Tensor run() {
    for (nb::handle i : all_) one(i);
    return out_;
  }

 private:
  // The number of dims that an index takes.
  static int64_t width(nb::handle i) {
    if (i.is_none() || i.ptr() == Py_Ellipsis) return 0;
    if (is_slice(i) || is_number(i)) return 1;
    const Tensor places = places_of(i);
    return is_mask(places) ? places.ndim() : 1;
  }
  void one(nb::handle i) {
    if (i.is_none()) {
      out_ = with_new_dim(out_, dim_++);
    } else if (i.ptr() == Py_Ellipsis) {
      if (std::exchange(dots_, true)) throw keel::Error(KEEL_INVALID, "t[...]: only one ... is allowed");
      dim_ += left_ - taking_;
    } else if (is_slice(i)) {
      out_ = pick_slice(out_, i, dim_++);
    } else if (is_number(i)) {
      out_ = keel::detail::pick_one(out_, {need_dim(i), kNowhere}, dim_);
    } else {
      several(i);
    }
  }
  void several(nb::handle i) {
    Tensor places = places_of(i);
    if (std::exchange(picked_, true))
      throw keel::Error(KEEL_UNIMPLEMENTED, "t[...]: at most one list or tensor is allowed as index",
                        "use keel.gather_nd, which gathers elements by rows of indices");
    out_ = is_mask(places) ? pick_true(out_, places, dim_) : pick_many(out_, places, dim_);
    dim_ += is_mask(places) ? 1 : places.ndim();
  }
  Tensor out_;
  nb::handle all_;
  int64_t left_, taking_ = 0, dim_ = 0;
  bool dots_ = false, picked_ = false;
};

}  // namespace

PyObject* tensor_index(PyObject* self, PyObject* index) {
  return guarded([&] {
    nb::object indices =
        PyTuple_Check(index) ? nb::borrow(index) : nb::object(nb::make_tuple(nb::handle(index)));
    return wrap(IndexWalk(tensor_of(self), indices).run());
  });
}

PyObject* tensor_row(PyObject* self, Py_ssize_t i) {
  return guarded([&] {
    return wrap(keel::detail::pick_one(tensor_of(self), {static_cast<int64_t>(i), kNowhere}, 0));
  });
}

Py_ssize_t tensor_length(PyObject* self) {
  return guarded([&]() -> Py_ssize_t {
    keel::Tensor t = tensor_of(self);
    if (t.ndim() == 0) {
      PyErr_SetString(PyExc_TypeError, "a tensor without dims has no length");
      throw nb::python_error();
    }
    return static_cast<Py_ssize_t>(t.dim(0).number());
  });
}

PyObject* tensor_rows(PyObject* self) {
  Py_ssize_t n = tensor_length(self);
  if (n < 0) return nullptr;
  if (!keel_array_symbolic(array_of(self))) return PySeqIter_New(self);
  return guarded([&] {  // an index of a trace is not checked here
    nb::list rows;
    for (Py_ssize_t i = 0; i < n; i++) {
      auto row = nb::steal(tensor_row(self, i));
      if (!row.is_valid()) throw nb::python_error();
      rows.append(row);
    }
    return PyObject_GetIter(rows.ptr());
  });
}

}  // namespace keel_python
