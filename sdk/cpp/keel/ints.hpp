// ints.hpp: lists of numbers as attributes: axes, sizes, strides.
#ifndef KEEL_INTS_HPP
#define KEEL_INTS_HPP
#include <concepts>
#include <vector>

#include "home.hpp"

namespace keel {

/// {2, 2}, a vector, or one number, which counts for each dim where the op takes one per dim. Ints(), {}:
/// left to the op's default; no numbers at all are Ints(std::vector<int64_t>()).
struct Ints {
  std::vector<int64_t> list;
  enum Form : uint8_t { kDefault, kOne, kList } form = kDefault;
  Ints() = default;
  Ints(std::initializer_list<int64_t> v) : list(v), form(kList) {}
  Ints(std::vector<int64_t> v) : list(std::move(v)), form(kList) {}
  Ints(std::integral auto v) : list{static_cast<int64_t>(v)}, form(kOne) {}
  explicit operator bool() const { return form != kDefault; }
};

namespace detail {
inline void ints(Attributes& at, const char* name, int32_t kind, const Ints& v) {
  if (v.form == Ints::kOne)
    kind == KEEL_ATTR_DIMS ? at.dim(name, v.list[0]) : at.i64(name, v.list[0]);
  else
    at.list(name, kind, v.list);
}
}  // namespace detail

}  // namespace keel
#endif
