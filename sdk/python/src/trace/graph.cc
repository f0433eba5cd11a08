// graph.cc: graphs built by programs from tensors, on the C++ SDK's graph.hpp; keel/graph.py is the public
// interface.
//
// How to read it: the scopes, functions that add values, then properties of a graph as tuples.
#include "trace/graph.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "values/dtype.h"
#include "values/literal.h"

namespace keel_python {

namespace {

using keel::Graph, keel::Tensor;

thread_local PyObject* default_graph = nullptr;  // borrowed from the innermost Writing

/// Between enter and leave the graph is its thread's default. takes_all: also adds ops on concrete tensors.
class Writing {
 public:
  Writing(nb::object graph, bool takes_all) : graph_(std::move(graph)), takes_all_(takes_all) {}
  nb::object enter() {
    if (scope_) throw keel::Error(KEEL_PRECONDITION, "the scope is already in use");
    scope_.emplace(nb::cast<Graph&>(graph_));
    if (takes_all_) keel::detail::trace_takes_all = true;
    before_ = std::exchange(default_graph, graph_.ptr());
    return graph_;
  }
  void leave(const nb::args&) { end(); }
  ~Writing() { end(); }  // if it was not left

 private:
  void end() {
    if (!scope_) return;
    default_graph = before_;
    scope_.reset();
  }
  nb::object graph_;
  bool takes_all_;
  std::optional<keel::GraphScope> scope_;
  PyObject* before_ = nullptr;
};

class Named {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  void enter() { scope_.emplace(name_); }
  void leave(const nb::args&) { scope_.reset(); }

 private:
  std::string name_;
  std::optional<keel::NameScope> scope_;
};

/// shape: numbers; -1 and None: taken from the feed; texts: symbols.
Tensor placeholder(nb::handle dtype, const nb::list& shape, const std::string& name) {
  std::vector<keel::Size> sizes;
  std::vector<std::string> symbols;
  symbols.reserve(nb::len(shape));
  for (nb::handle size : shape)
    if (nb::isinstance<nb::str>(size))
      sizes.emplace_back(symbols.emplace_back(nb::cast<std::string>(size)).c_str());
    else
      sizes.emplace_back(size.is_none() ? int64_t{-1} : nb::cast<int64_t>(size));
  return keel::placeholder(need_dtype(dtype), sizes, name, kNowhere);
}

Tensor constant(nb::handle value, nb::handle dtype, const std::string& name) {
  Tensor t = to_tensor(value, dtype.is_none() ? keel_dt{0} : need_dtype(dtype));
  return t.symbolic() ? t : keel::constant(keel::Operand(t, kNowhere), name);
}

nb::tuple node_tuple(const keel::Node& node) {
  return nb::make_tuple(node.name, node.op, node.inputs, node.outputs);
}
nb::list nodes(const Graph& graph) {
  nb::list out;
  for (const keel::Node& node : graph.nodes()) out.append(node_tuple(node));
  return out;
}
nb::list values(const Graph& graph) {
  nb::list out;
  for (const keel::Value& value : graph.values()) {
    nb::object dtype = nb::borrow(dtype_object(value.dtype));
    out.append(nb::make_tuple(value.name, dtype, nb::tuple(nb::cast(value.shape))));
  }
  return out;
}
std::string last_node(const Graph& graph) {
  uint32_t count = 0, n_in = 0, n_out = 0;
  uint32_t* none = nullptr;
  keel::call(keel_graph_counts, graph.get(), &count, none, none, none);
  keel_text* name = nullptr;
  const char* op = nullptr;
  const keel_value *in = nullptr, *out = nullptr;
  keel::call(keel_graph_node_at, graph.get(), count - 1, &name, &op, &in, &n_in, &out, &n_out);
  return keel::take_text(name);
}
std::vector<keel_value> numbers(const Graph& graph, const std::vector<Tensor>& tensors) {
  std::vector<keel_value> out;
  for (const Tensor& t : tensors) out.push_back(keel::detail::need_open(graph).number_of(t));
  return out;
}
nb::list gradient(Graph& graph, const std::vector<Tensor>& ys, const std::vector<Tensor>& xs,
                  const std::vector<Tensor>& seeds, bool zeros) {
  nb::list out;
  for (keel_value v : graph.gradient(numbers(graph, ys), numbers(graph, xs), numbers(graph, seeds), zeros))
    out.append(v == KEEL_NO_VALUE ? nb::none() : object_of(keel::detail::need_open(graph).tensor(v)));
  return out;
}
/// Whether it is a value of this graph. False for values of other traces and for concrete tensors.
bool owns(const Graph& graph, const Tensor& t) {
  keel_value value = KEEL_NO_VALUE;
  return t.symbolic() &&
         keel_trace_value(keel::detail::need_open(graph).trace.get(), t.get(), &value, nullptr) == KEEL_OK;
}

template <class Scope>
void add_scope_methods(nb::class_<Scope>& scope) {
  scope.def("__enter__", &Scope::enter).def("__exit__", &Scope::leave);
}

}  // namespace

void install_graph(nb::module_& m) {
  nb::class_<Writing> writing(m, "Writing");
  add_scope_methods(writing.def(nb::init<nb::object, bool>()));
  nb::class_<Named> named(m, "NameScope");
  add_scope_methods(named.def(nb::init<std::string>()));
  nb::class_<Graph>(m, "Graph", nb::dynamic_attr(), nb::is_weak_referenceable())
      .def(nb::init<>())
      .def("_value", [](const Graph& g, const std::string& name) { return g.value(name); })
      .def("_name_of",
           [](const Graph& g, const Tensor& t) { return g.name_of(keel::detail::need_open(g).number_of(t)); })
      .def("_owns", owns)
      .def("_node", [](const Graph& g, const std::string& name) { return node_tuple(g.node(name)); })
      .def("_nodes", nodes)
      .def("_last_node", last_node)
      .def("_scope", [](const Graph& g) { return keel::detail::need_open(g).scope; })
      .def("_values", values)
      .def("_result", [](Graph& g, const std::string& name, const Tensor& t) { g.result(name, t); })
      .def("_gradient", gradient)
      .def("_device", [](const Graph& g) { return keel::detail::need_open(g).home.device(); })
      .def(
          "_module", [](const Graph& g) -> keel::Module& { return g.module(); },
          nb::rv_policy::reference_internal);
  auto object_or_none = [](PyObject* o) { return o ? nb::borrow(o) : nb::object(nb::none()); };
  m.def("default_graph", [=] { return object_or_none(default_graph); });
  m.def(
      "written_graph", [=] { return object_or_none(keel::detail::writing() ? default_graph : nullptr); },
      "The default graph if this thread adds to it; None also inside traced code.");
  m.def("placeholder", placeholder);
  m.def("constant", constant, nb::arg(), nb::arg().none(), nb::arg());
  m.def("named", &keel::named);
}

}  // namespace keel_python
