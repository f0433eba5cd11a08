// structure.h: arguments and results of any structure: tuples, lists, dicts, named tuples and dataclasses are
// walked into, all else is a leaf. Dicts go by the order of their keys' texts.
#ifndef KEEL_PYTHON_STRUCTURE_H
#define KEEL_PYTHON_STRUCTURE_H
#include <functional>

#include "array.h"
#include "keel/structure.hpp"

namespace keel_python {

/// What a leaf becomes; its place is "", ".w", "[0]", "[0].w" ...
using Leaf = std::function<nb::object(nb::handle leaf, const std::string& place)>;
/// The same structure with other leaves. shape: gets a text that two structures share only if they are alike.
nb::object map_leaves(nb::handle value, const Leaf& leaf, std::string* shape = nullptr);

/// The arguments of a call as leaves of the C API, and all that they borrow from.
struct Flat {
  keel::detail::Leaves leaves;
  nb::object value;  // in which what other libraries hold is a tensor
  std::vector<std::string> places;
  std::vector<nb::object> objects;  // that count by identity
};
/// Of a tuple of arguments. names: also the places, for the first call of a structure.
/// room: an empty list whose memory is used again.
Flat flatten(nb::handle arguments, bool names, std::vector<keel_leaf> room = {});

/// A tensor for a leaf of a result: numbers are literals, variables are read. A TypeError says what else is.
keel::Tensor result_tensor(nb::handle leaf, const std::string& place);

void install_structure(nb::module_& m);

}  // namespace keel_python
#endif
