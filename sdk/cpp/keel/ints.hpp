// ints.hpp: lists of numbers as attributes: axes, sizes (also symbolic), strides.
#ifndef KEEL_INTS_HPP
#define KEEL_INTS_HPP
#include <concepts>
#include <utility>
#include <vector>

#include "dim.hpp"

namespace keel {

/// {2, 2}, a vector, or one number, which applies to each dim where the op takes one per dim. Ints() or {}:
/// the default of the op; an empty list is Ints(std::vector<int64_t>()). Shapes may contain symbolic sizes:
/// {x.dim(0), 10}.
struct Ints {
  std::vector<int64_t> list;
  std::vector<Dim> sizes;  // used instead of `list` if one is symbolic
  enum Form : uint8_t { kDefault, kOne, kList } form = kDefault;
  Ints() = default;
  Ints(std::initializer_list<int64_t> v) : list(v), form(kList) {}
  Ints(std::vector<int64_t> v) : list(std::move(v)), form(kList) {}
  Ints(std::integral auto v) : list{static_cast<int64_t>(v)}, form(kOne) {}
  Ints(std::initializer_list<Dim> v) : Ints(std::vector(v)) {}
  Ints(std::vector<Dim> v) : sizes(std::move(v)), form(kList) {
    for (const Dim& d : sizes)
      if (d.symbolic()) return;
    for (const Dim& d : std::exchange(sizes, {})) list.push_back(d.number());
  }
  Ints(const Dim& v) : Ints({v}) { form = kOne; }
  size_t size() const { return list.size() + sizes.size(); }
  explicit operator bool() const { return form != kDefault; }
};

namespace detail {
inline void ints(Attributes& at, const char* name, int32_t kind, const Ints& v) {
  std::vector<keel_dim> handles;
  for (const Dim& d : v.sizes) {
    handles.push_back(kind == KEEL_ATTR_I64S ? d.number() : d.handle());
  }
  if (!handles.empty() && kind == KEEL_ATTR_I64S)
    v.form == Ints::kOne ? at.i64(name, handles[0]) : at.numbers(name, std::move(handles));
  else if (!handles.empty())
    v.form == Ints::kOne ? at.dim(name, handles[0]) : at.sizes(name, std::move(handles));
  else if (v.form == Ints::kOne)
    kind == KEEL_ATTR_DIMS ? at.dim(name, v.list[0]) : at.i64(name, v.list[0]);
  else
    at.list(name, kind, v.list);
}
}  // namespace detail

}  // namespace keel
#endif
