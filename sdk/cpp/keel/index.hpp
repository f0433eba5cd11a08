// index.hpp: parts of tensors: t[1], t[-1], t[keel::Slice{0, 6, 2}], t[{keel::all, 3}], t[other], rows.
//
// How to read it: an Index is a number (the dim goes away), a Slice (it stays) or a tensor of numbers (rows
// are picked). Numbers and slices count from the end where they are negative. All of it is ops: gather and
// slice.
#ifndef KEEL_INDEX_HPP
#define KEEL_INDEX_HPP
#include <optional>

#include "ops.hpp"

namespace keel {

/// From start to before stop in steps; {} is everything, {1} all but the first, {{}, -1} all but the last.
struct Slice {
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;
};
inline constexpr Slice all;

class Index {
 public:
  Index(std::integral auto i, const Place& where = Place::current())
      : number(static_cast<int64_t>(i)), where(where) {}
  Index(const Slice& s, const Place& where = Place::current()) : slice(s), where(where) {}
  Index(const Tensor& t, const Place& where = Place::current()) : picked(t), where(where) {}
  std::optional<int64_t> number;
  Slice slice;
  Tensor picked;
  Place where;
};

namespace detail {

[[noreturn]] inline void bad_index(const Tensor& t, const Index& index, int64_t dim,
                                   const std::string& what) {
  throw Error(KEEL_RANGE, what + " for dim " + std::to_string(dim) + " of " + t.type())
      .within("t[...]", index.where);
}

// Numbers from the end need a size that is known.
inline int64_t from_start(const Tensor& t, const Index& index, int64_t dim, int64_t i) {
  int64_t size = t.shape()[static_cast<size_t>(dim)];
  if (i < 0 && size < 0)
    bad_index(t, index, dim, "a place that counts from the end, " + std::to_string(i) + ",");
  return i < 0 ? i + size : i;
}

inline Tensor pick_one(const Tensor& t, const Index& index, int64_t dim) {
  int64_t size = t.shape()[static_cast<size_t>(dim)], i = from_start(t, index, dim, *index.number);
  if (i < 0 || (size >= 0 && i >= size))
    bad_index(t, index, dim, "no index " + std::to_string(*index.number));
  return gather(Operand(t, index.where), i64(i), {.axis = dim});
}

// Of one dim; the others, whose sizes may not be known, are left alone by gather.
inline Tensor pick_slice(const Tensor& t, const Index& index, int64_t dim) {
  const Slice& s = index.slice;
  int64_t size = t.shape()[static_cast<size_t>(dim)];
  if (!s.start && !s.stop && s.step == 1) return t;
  if (s.step < 1) bad_index(t, index, dim, "the step " + std::to_string(s.step));
  if (!s.stop && size < 0) bad_index(t, index, dim, "a slice without an end");
  int64_t start = from_start(t, index, dim, s.start.value_or(0));
  int64_t stop = from_start(t, index, dim, s.stop.value_or(size));
  if (size >= 0) start = std::clamp<int64_t>(start, 0, size), stop = std::clamp<int64_t>(stop, 0, size);
  stop = std::max(start, stop);
  std::vector<int64_t> from(t.shape().size(), 0), to(t.shape().begin(), t.shape().end()),
      step(from.size(), 1);
  auto d = static_cast<size_t>(dim);
  from[d] = start, to[d] = stop, step[d] = s.step;
  bool known = std::ranges::all_of(t.shape(), [](int64_t n) { return n >= 0; });
  if (known) return keel::slice(Operand(t, index.where), {.start = from, .stop = to, .step = step});
  Tensor places = iota({(stop - start + s.step - 1) / s.step}) * s.step + start;
  return gather(Operand(t, index.where), places, {.axis = dim});
}

}  // namespace detail

inline Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  Tensor out = *this;
  int64_t dim = 0;
  for (const Index& index : indices) {
    if (dim >= out.ndim())
      throw Error(KEEL_RANGE, std::to_string(indices.size()) + " indices for " + type())
          .within("t[...]", index.where);
    if (index.number)
      out = detail::pick_one(out, index, dim);
    else if (!index.picked.empty())
      out = gather(Operand(out, index.where), index.picked, {.axis = dim}), dim += index.picked.ndim();
    else
      out = detail::pick_slice(out, index, dim++);
  }
  return out;
}
inline Tensor Tensor::operator[](const Index& index) const { return (*this)[{index}]; }

inline Tensor Tensor::Row::operator*() const { return of_[at_]; }
inline Tensor::Row Tensor::begin() const { return {*this, 0}; }
inline Tensor::Row Tensor::end() const {
  if (ndim() == 0) throw Error(KEEL_INVALID, "a tensor without dims has no rows: " + type());
  if (shape()[0] < 0)
    throw Error(KEEL_PRECONDITION, "the number of rows of " + type() + " is not known while it is traced",
                "compute on the whole tensor; a loop of C++ is unrolled and needs a number");
  return {*this, shape()[0]};
}

}  // namespace keel
#endif
