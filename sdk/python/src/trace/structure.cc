// structure.cc: walks over nested Python values.
//
// How to read it: Walk handles the containers, a callback the leaves. A new kind of container is a line in
// Walk::one and a function that rebuilds it.
#include "trace/structure.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>

#include "values/foreign.h"
#include "values/literal.h"
#include "values/variable.h"

namespace keel_python {

namespace {

class Walk {
 public:
  Walk(const Leaf& leaf, std::string* shape) : leaf_(leaf), shape_(shape) {}

  nb::object one(nb::handle v) {
    PyObject* o = v.ptr();
    if (is_tensor(o)) return leaf_(v, place_);
    if (depth_ > 64)
      throw keel::Error(KEEL_INVALID, "a structure is nested deeper than 64 levels, or contains itself");
    if (PyTuple_Check(o)) return PyTuple_CheckExact(o) ? sequence(v, "(") : named(v);
    if (PyList_CheckExact(o)) return nb::list(sequence(v, "["));
    if (PyDict_CheckExact(o)) return dict(v);
    if (!PyType_Check(o) && PyObject_HasAttrString(o, "__dataclass_fields__")) return record(v);
    return leaf_(v, place_);
  }

 private:
  void open(const std::string& what) {
    if (shape_) *shape_ += what;
  }
  nb::object child(nb::handle v, const std::string& step) {
    size_t before = place_.size();
    place_ += step;
    depth_++;
    nb::object out = one(v);
    depth_--;
    place_.resize(before);
    return out;
  }
  /// fields: the names of a named tuple, or None.
  nb::object sequence(nb::handle v, const char* kind, nb::handle fields = Py_None) {
    open(kind);
    nb::list out;
    size_t k = 0;
    for (nb::handle each : v) {
      std::string number = "[" + std::to_string(k) + "]";
      out.append(child(each, fields.is_none() ? number : "." + nb::cast<std::string>(nb::object(fields[k]))));
      k++;
    }
    open(")");
    return nb::tuple(out);
  }
  nb::object named(nb::handle v) {
    open(type_name(v));
    nb::object make = nb::getattr(v.type(), "_make", nb::handle(v.type()));
    return make(sequence(v, "(", nb::getattr(v.type(), "_fields", nb::none())));
  }
  nb::object dict(nb::handle v) {
    std::vector<std::pair<std::string, nb::object>> keys;
    for (nb::handle key : v) keys.emplace_back(nb::cast<std::string>(nb::repr(key)), nb::borrow(key));
    std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    auto out = nb::steal<nb::dict>(PyDict_Copy(v.ptr()));
    open("{");
    for (const auto& [text, key] : keys) {
      open(std::to_string(text.size()) + ":" + text);
      bool word = PyUnicode_Check(key.ptr());
      out[key] = child(nb::object(v[key]), word ? "." + nb::cast<std::string>(key) : "[" + text + "]");
    }
    open("}");
    return out;
  }
  nb::object record(nb::handle v) {
    nb::object out = nb::module_::import_("copy").attr("copy")(v),
               set = nb::handle(&PyBaseObject_Type).attr("__setattr__");
    open(type_name(v) + "{");
    for (nb::handle name : nb::object(v.attr("__dataclass_fields__")))
      set(out, name,
          child(nb::object(v.attr(nb::cast<std::string>(name).c_str())), "." + nb::cast<std::string>(name)));
    open("}");
    return out;
  }
  static std::string type_name(
      nb::handle v) {  // types are kept as long as functions that have seen them, practically forever
    return "<" + std::to_string(reinterpret_cast<uintptr_t>(v.type().ptr())) + ">";
  }

  const Leaf& leaf_;
  std::string* shape_;
  std::string place_;
  int depth_ = 0;
};

keel_leaf leaf_of(int32_t kind) { return {kind, 0, nullptr, nullptr, 0, 0, nullptr}; }

/// np.float64 is a subclass of float, and is weak next to tensors, too.
bool is_numpy_float(PyObject* o) {
  return PyFloat_Check(o) && std::string_view(Py_TYPE(o)->tp_name) == "numpy.float64";
}

/// A leaf compared by type and value; empty for other leaves.
std::optional<keel_leaf> fixed(PyObject* o, std::string& shape) {
  auto made = [&](int32_t kind, char letter) {
    shape += letter;
    return leaf_of(kind);
  };
  if (o == Py_None) return made(KEEL_LEAF_NONE, 'n');
  if (PyBool_Check(o)) {
    keel_leaf leaf = made(KEEL_LEAF_BOOL, 'b');
    return leaf.i = o == Py_True, leaf;
  }
  if (bool numpys = is_numpy_float(o); numpys || PyFloat_CheckExact(o)) {
    keel_leaf leaf = made(KEEL_LEAF_F64, numpys ? 'd' : 'f');
    return leaf.f = PyFloat_AS_DOUBLE(o), leaf;
  }
  if (PyUnicode_CheckExact(o)) {
    keel_leaf leaf = made(KEEL_LEAF_STR, 's');
    Py_ssize_t size = 0;
    leaf.s = PyUnicode_AsUTF8AndSize(o, &size);
    if (!leaf.s) throw nb::python_error();
    if (std::strlen(leaf.s) != static_cast<size_t>(size))
      throw keel::Error(KEEL_INVALID, "a string argument of a function contains a NUL character");
    return leaf;
  }
  if (!PyLong_CheckExact(o)) return std::nullopt;
  int overflow = 0;
  keel_leaf leaf = made(KEEL_LEAF_I64, 'i');
  leaf.i = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) throw keel::Error(KEEL_INVALID, "an argument of a function does not fit in i64");
  return leaf;
}

}  // namespace

nb::object map_leaves(nb::handle value, const Leaf& leaf, std::string* shape) {
  return Walk(leaf, shape).one(value);
}

namespace {

/// A leaf other than numbers, strings and None: a tensor, or an object compared by identity.
nb::object by_type_or_identity(nb::handle leaf, Flat& flat) {
  nb::object kept = nb::borrow(leaf);
  keel_leaf made = leaf_of(KEEL_LEAF_I64);
  char letter = 'V';
  if (nb::isinstance<keel::Variable>(leaf)) {
    made.i = static_cast<int64_t>(nb::cast<const keel::Variable&>(leaf).id());
  } else {
    if (!is_tensor(kept.ptr()))
      if (keel::Tensor t = from_foreign(leaf, true); !t.empty()) kept = object_of(t);
    letter = is_tensor(kept.ptr()) ? 'T' : 'O';
    if (letter == 'T') {
      made.kind = KEEL_LEAF_ARRAY;
      made.array = array_of(kept.ptr());
    } else {
      made.i = static_cast<int64_t>(reinterpret_cast<intptr_t>(leaf.ptr()));
      flat.objects.push_back(kept);
    }
  }
  flat.leaves.structure += letter;
  flat.leaves.list.push_back(made);
  return kept;
}

/// The fast path: only tensors and numbers, without containers. Returns false for other arguments.
bool flatten_plain(nb::handle arguments, Flat& flat) {
  keel::detail::Leaves& leaves = flat.leaves;
  leaves.structure += "(";
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(arguments.ptr()); k++) {
    PyObject* o = PyTuple_GET_ITEM(arguments.ptr(), k);
    if (is_tensor(o)) {
      leaves.structure += 'T';
      leaves.list.push_back({KEEL_LEAF_ARRAY, 0, nullptr, array_of(o), 0, 0, nullptr});
    } else if (std::optional<keel_leaf> known = fixed(o, leaves.structure)) {
      leaves.list.push_back(*known);
    } else {
      return false;
    }
  }
  leaves.structure += ")";
  flat.value = nb::borrow(arguments);
  return true;
}

}  // namespace

Flat flatten(nb::handle arguments, bool names, std::vector<keel_leaf> room) {
  Flat flat;
  flat.leaves.list = std::move(room);
  flat.leaves.list.reserve(8);
  if (!names && flatten_plain(arguments, flat)) return flat;
  flat = Flat();
  std::string& shape = flat.leaves.structure;
  Leaf add = [&](nb::handle leaf, const std::string& place) -> nb::object {
    if (names) flat.places.push_back(place);
    std::optional<keel_leaf> known = fixed(leaf.ptr(), shape);
    if (!known) return by_type_or_identity(leaf, flat);
    flat.leaves.list.push_back(*known);
    return nb::borrow(leaf);
  };
  flat.value = map_leaves(arguments, add, &shape);
  return flat;
}

keel::Tensor result_tensor(nb::handle leaf, const std::string& place) {
  if (is_tensor(leaf.ptr())) return tensor_of(leaf.ptr());
  if (std::optional<keel::Operand> found = find_operand(leaf)) return to_tensor(leaf);
  PyErr_Format(PyExc_TypeError,
               "a result%s is %s; results must be tensors, numbers, None or structures of them",
               place.c_str(), Py_TYPE(leaf.ptr())->tp_name);
  throw nb::python_error();
}

void install_structure(nb::module_& m) {
  auto each = [](nb::handle value, auto f) {
    map_leaves(value,
               [&](nb::handle leaf, const std::string& place) { return f(leaf, place), nb::borrow(leaf); });
  };
  m.def(
      "map_leaves",
      [](nb::handle value, nb::handle f) {
        return map_leaves(value, [&](nb::handle leaf, const std::string&) { return call_python(f, leaf); });
      },
      nb::arg().none(), nb::arg());
  m.def(
      "leaves",
      [=](nb::handle value) {
        nb::list out;
        each(value, [&](nb::handle leaf, const std::string&) { out.append(leaf); });
        return out;
      },
      nb::arg().none());
  m.def(
      "places",
      [=](nb::handle value) {
        nb::list out;
        each(value, [&](nb::handle leaf, const std::string& at) { out.append(nb::make_tuple(at, leaf)); });
        return out;
      },
      nb::arg().none());
  m.def(
      "structure",
      [](nb::handle value) {
        std::string shape;
        map_leaves(
            value,
            [&](nb::handle leaf, const std::string&) {
              return shape += leaf.is_none() ? 'n' : '*', nb::borrow(leaf);
            },
            &shape);
        return shape;
      },
      nb::arg().none());
}

}  // namespace keel_python
