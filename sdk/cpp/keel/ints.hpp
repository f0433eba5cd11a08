// ints.hpp: lists of numbers as attributes: axes, sizes, strides.
#ifndef KEEL_INTS_HPP
#define KEEL_INTS_HPP
#include <vector>

#include "home.hpp"

namespace keel {

/// {2, 2}, a vector, or one number, which counts for each dim where the op takes one per dim.
struct Ints {
  std::vector<int64_t> list;
  bool one = false;
  Ints(std::initializer_list<int64_t> v) : list(v) {}
  Ints(std::vector<int64_t> v) : list(std::move(v)) {}
  Ints(std::integral auto v) : list{static_cast<int64_t>(v)}, one(true) {}
};

namespace detail {
inline void ints(Attributes& at, const char* name, int32_t kind, const Ints& v) {
  if (v.one)
    kind == KEEL_ATTR_DIMS ? at.dim(name, v.list[0]) : at.i64(name, v.list[0]);
  else
    at.list(name, kind, v.list);
}
}  // namespace detail

}  // namespace keel
#endif
