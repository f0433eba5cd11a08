// structure.h: arguments and results of any structure. Tuples, lists, dicts, named tuples and dataclasses are
// containers, other objects are leaves. Dicts are walked in the order of their keys' reprs.
#ifndef KEEL_PYTHON_STRUCTURE_H
#define KEEL_PYTHON_STRUCTURE_H
#include <functional>

#include "keel/structure.hpp"
#include "values/array.h"

namespace keel_python {

/// The replacement of a leaf; place: its path, "", ".w", "[0]", "[0].w" ...
using Leaf = std::function<nb::object(nb::handle leaf, const std::string& place)>;
/// The same structure with other leaves. shape: receives a text that is equal only for equal structures.
nb::object map_leaves(nb::handle value, const Leaf& leaf, std::string* shape = nullptr);

/// The arguments of a call as leaves of the C API, and the owners of borrowed data.
struct Flat {
  keel::detail::Leaves leaves;
  nb::object value;  // the arguments, with arrays of other libraries as tensors
  std::vector<std::string> places;
  std::vector<nb::object> objects;  // compared by identity
};
/// The leaves of a tuple of arguments. names: also the paths, for the first call with a structure.
/// room: an empty list whose memory is reused.
Flat flatten(nb::handle arguments, bool names, std::vector<keel_leaf> room = {});

/// The tensor of a leaf of a result: numbers are literals, variables are read. A TypeError for other objects.
keel::Tensor result_tensor(nb::handle leaf, const std::string& place);

void install_structure(nb::module_& m);

}  // namespace keel_python
#endif
