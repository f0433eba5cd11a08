// index.hpp: indexing: t[1], t[-1], t[keel::Slice{0, 6, 2}], t[{keel::all, 3}], t[other], rows.
//
// How to read it: an Index is a number (removes the dim), a Slice (keeps it) or a tensor of numbers (gathers
// entries). Negative numbers and slice ends count from the end. Implemented with the ops gather and slice.
#ifndef KEEL_INDEX_HPP
#define KEEL_INDEX_HPP
#include <optional>

#include "keel/ops.hpp"

namespace keel {

/// start, stop (exclusive), step >= 1; {} is everything, {1} all but the first, {{}, -1} all but the last.
struct Slice {
  std::optional<Dim> start = {}, stop = {};
  int64_t step = 1;
};
inline constexpr Slice all;

class Index {
 public:
  Index(std::integral auto i, const Place& where = Place::current()) : number(i), where(where) {}
  Index(const Dim& i, const Place& where = Place::current()) : number(i), where(where) {}
  Index(const Slice& s, const Place& where = Place::current()) : slice(s), where(where) {}
  Index(const Tensor& t, const Place& where = Place::current()) : picked(t), where(where) {}
  std::optional<Dim> number;
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

// Whether the index counts from the end. For n - 1 of n both results select the same entry.
inline bool from_end(const Dim& i, const Dim& size) {
  return i.symbolic() ? (i - size).text() != "-1" && i < 0 : i.number() < 0;
}
inline Dim from_start(const Dim& i, const Dim& size) { return from_end(i, size) ? i + size : i; }
/// An end of a slice, with Python's rules: counted from the start and clamped to the dim.
inline Dim end_of_slice(const Dim& i, const Dim& size) {
  return from_end(i, size) ? max(i + size, 0) : i.symbolic() ? max(min(i, size), 0) : min(i, size);
}

inline Tensor pick_one(const Tensor& t, const Index& index, int64_t dim) {
  Dim size = t.dim(dim), i = from_start(*index.number, size);
  if (!i.symbolic() && (i.number() < 0 || (!size.symbolic() && i.number() >= size.number())))
    bad_index(t, index, dim, "index " + index.number->text() + " is out of range");
  return gather(Operand(t, index.where), i.symbolic() ? keel::dim(i) : i64(i.number()), {.axis = dim});
}

/// start to stop (exclusive), both within the dim; step >= 1.
inline Tensor pick_range(const Operand& t, const Tensor& of, int64_t dim, const Dim& start, const Dim& stop,
                         int64_t step) {
  std::vector<Dim> from(of.shape().size(), 0), to;
  for (int64_t d = 0; d < of.ndim(); d++) to.push_back(of.dim(d));
  std::vector<int64_t> steps(from.size(), 1);
  auto d = static_cast<size_t>(dim);
  from[d] = start, to[d] = stop, steps[d] = step;
  return keel::slice(t, {.start = Ints(from), .stop = Ints(to), .step = steps});
}

inline Tensor pick_slice(const Tensor& t, const Index& index, int64_t dim) {
  const Slice& s = index.slice;
  if (!s.start && !s.stop && s.step == 1) return t;
  if (s.step < 1) bad_index(t, index, dim, "step " + std::to_string(s.step) + " is below 1");
  Dim size = t.dim(dim), start = s.start ? end_of_slice(*s.start, size) : 0,
      stop = s.stop ? end_of_slice(*s.stop, size) : size;
  if (s.start && s.stop) stop = max(start, stop);
  return pick_range(Operand(t, index.where), t, dim, start, stop, s.step);
}

}  // namespace detail

/// One index per dim, from the first; missing ones mean all. Error KEEL_RANGE for an index out of range or
/// too many indices; indices in tensors are checked by the op gather.
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
/// Entry, slice or gathered entries of the first dim.
inline Tensor Tensor::operator[](const Index& index) const { return (*this)[{index}]; }

inline Tensor Tensor::Row::operator*() const { return of_[at_]; }
inline Tensor::Row Tensor::begin() const { return {*this, 0}; }
inline Tensor::Row Tensor::end() const {
  if (ndim() == 0) throw Error(KEEL_INVALID, "a tensor without dims has no rows: " + type());
  return {*this, dim(0).number()};
}

}  // namespace keel
#endif
