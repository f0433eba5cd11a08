// index.cc: parts of tensors, as NumPy writes them: t[1], t[-1], t[0:6:2], t[::-1], t[..., 0], t[:, None],
// t[[0, 2]], t[other]. All of it is ops: gather, slice, reverse, reshape.
//
// How to read it: each index works on the dim that is in turn and says how many dims it leaves.
#include "index.h"

#include <algorithm>

#include "dim.h"
#include "keel/index.hpp"
#include "literal.h"

namespace keel_python {

namespace {

using keel::Tensor;

keel::Operand at(const Tensor& t) { return keel::Operand(t, kNowhere); }

constexpr int64_t kFar = int64_t{1} << 60;  // beyond any dim
std::optional<int64_t> bound(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  if (nb::isinstance<keel::Dim>(o)) return need_dim(o).number();
  if (!PyIndex_Check(o)) {
    PyErr_Format(PyExc_TypeError, "t[...]: the ends and the step of a slice are integers, not %s",
                 Py_TYPE(o)->tp_name);
    throw nb::python_error();
  }
  int64_t i = PyNumber_AsSsize_t(o, nullptr);  // cut at its ends
  if (i == -1 && PyErr_Occurred()) throw nb::python_error();
  return std::clamp(i, -kFar, kFar);
}

Tensor reversed(const Tensor& t, int64_t dim) {
  return keel::reverse(at(t), {.axes = std::vector<int64_t>{dim}});
}

// Of a dim whose size a trace does not know: its ends are sizes of the trace, too. Nothing is clamped.
Tensor pick_unknown(const Tensor& t, const keel::Slice& part, int64_t dim) {
  std::vector<keel::Dim> from, to;
  std::vector<int64_t> step(static_cast<size_t>(t.ndim()), 1);
  for (int64_t d = 0; d < t.ndim(); d++) from.push_back(0), to.push_back(t.dim(d));
  auto k = static_cast<size_t>(dim);
  auto place = [&](int64_t i) { return i < 0 ? t.dim(dim) + i : keel::Dim(i); };
  if (part.start) from[k] = place(*part.start);
  if (part.stop) to[k] = place(*part.stop);
  step[k] = part.step;
  return keel::slice(at(t), {.start = keel::Ints(from), .stop = keel::Ints(to), .step = step});
}

// As Python: what a slice with a negative step names is a slice of the reversed dim.
Tensor pick_slice(const Tensor& t, nb::handle slice, int64_t dim) {
  auto* s = reinterpret_cast<PySliceObject*>(slice.ptr());
  keel::Slice part{bound(s->start), bound(s->stop), bound(s->step).value_or(1)};
  if (part.step == 0) throw keel::Error(KEEL_INVALID, "t[...]: the step of a slice is 0");
  int64_t size = t.shape()[static_cast<size_t>(dim)];
  if (part.step > 0 && size < 0 && (part.start || part.stop || part.step > 1))
    return pick_unknown(t, part, dim);
  if (part.step > 0) return keel::detail::pick_slice(t, {part, kNowhere}, dim);
  if (size < 0)
    throw keel::Error(KEEL_PRECONDITION, "t[...]: a negative step needs a size that is known, of dim " +
                                             std::to_string(dim) + " of " + t.type());
  auto turned = [&](std::optional<int64_t> i) -> std::optional<int64_t> {
    if (!i) return std::nullopt;
    return std::max<int64_t>(0, size - 1 - (*i < 0 ? *i + size : *i));
  };
  keel::Slice mirror{turned(part.start), turned(part.stop), -part.step};
  return keel::detail::pick_slice(reversed(t, dim), {mirror, kNowhere}, dim);
}

Tensor with_new_dim(const Tensor& t, int64_t dim) {
  std::vector<keel::Dim> shape;
  for (int64_t d = 0; d < t.ndim(); d++) shape.push_back(t.dim(d));
  shape.insert(shape.begin() + dim, keel::Dim(1));
  return keel::reshape(at(t), keel::Ints(std::move(shape)));
}

Tensor pick_many(const Tensor& t, const Tensor& places, int64_t dim) {
  if (char kind = keel::find_dtype(places.dtype())->kind; kind == 'f')
    throw FaultyCall(keel::Error(KEEL_INVALID, "t[...]: indices are integers, got " + places.type()),
                     Fault::kDtype);
  else if (kind == 'b')
    throw keel::Error(KEEL_INVALID, "t[...]: a bool tensor cannot pick: how many it picks is not known",
                      "keel.select(mask, t, other) keeps the shape");
  int64_t size = t.shape()[static_cast<size_t>(dim)];
  if (size < 0) return keel::gather(at(t), places, {.axis = dim});
  return keel::gather(at(t), keel::select(keel::less(at(places), 0), keel::add(at(places), size), places),
                      {.axis = dim});
}

bool is_slice(nb::handle i) { return PySlice_Check(i.ptr()); }
bool is_number(nb::handle i) {
  if (is_tensor(i.ptr()) || !PyIndex_Check(i.ptr()) || PyBool_Check(i.ptr())) return false;
  return PyLong_Check(i.ptr()) || nb::getattr(i, "ndim", nb::int_(0)).equal(nb::int_(0));
}
// What is neither: a list or an array of integers.
Tensor places_of(nb::handle i) {
  if (std::optional<keel::Operand> found = find_operand(i)) return to_tensor(i);
  PyErr_Format(PyExc_TypeError,
               "t[...]: an index is an integer, a slice, ..., None, or a list or tensor of integers, not %s",
               Py_TYPE(i.ptr())->tp_name);
  throw nb::python_error();
}

class Picking {
 public:
  Picking(Tensor t, nb::handle indices) : out_(std::move(t)), all_(indices), left_(out_.ndim()) {
    for (nb::handle i : all_) taking_ += !i.is_none() && i.ptr() != Py_Ellipsis;
    if (taking_ > left_)
      throw keel::Error(KEEL_RANGE, std::to_string(taking_) + " indices for " + out_.type());
  }
  Tensor run() {
    for (nb::handle i : all_) one(i);
    return out_;
  }

 private:
  void one(nb::handle i) {
    if (i.is_none()) {
      out_ = with_new_dim(out_, dim_++);
    } else if (i.ptr() == Py_Ellipsis) {
      if (std::exchange(dots_, true)) throw keel::Error(KEEL_INVALID, "t[...]: only one ... can stand there");
      dim_ += left_ - taking_;
    } else if (is_slice(i)) {
      out_ = pick_slice(out_, i, dim_++);
    } else if (is_number(i)) {
      out_ = keel::detail::pick_one(out_, {need_dim(i).number(), kNowhere}, dim_);
    } else {
      several(i);
    }
  }
  void several(nb::handle i) {
    Tensor places = places_of(i);
    if (std::exchange(picked_, true))
      throw keel::Error(KEEL_UNIMPLEMENTED, "t[...]: two lists or tensors as indices of one tensor",
                        "keel.gather_nd picks elements by rows of indices");
    out_ = pick_many(out_, places, dim_);
    dim_ += places.ndim();
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
    return wrap(Picking(tensor_of(self), indices).run());
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

PyObject* tensor_rows(PyObject* self) { return tensor_length(self) < 0 ? nullptr : PySeqIter_New(self); }

}  // namespace keel_python
