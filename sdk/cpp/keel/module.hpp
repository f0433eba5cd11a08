// module.hpp: modules (the contents of a file) and graphs built node by node.
//
// How to read it: Graph first, then Module. graph.hpp has graphs written as C++ code on tensors.
#ifndef KEEL_MODULE_HPP
#define KEEL_MODULE_HPP
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array.hpp"

namespace keel {

class Tensor;
class Module;
namespace detail {
struct OpenGraph;  // graph.hpp
}

/// An op with the names of its operands ("": omitted) and results. A parameter or constant has the op
/// "parameter" or "constant".
struct Node {
  std::string name, op;
  std::vector<std::string> inputs, outputs;
};
/// A parameter, constant or result of a node. shape: -1 where it is unknown before a run.
struct Value {
  keel_value number = KEEL_NO_VALUE;
  std::string name;
  keel_dt dtype = 0;
  std::vector<int64_t> shape;
};

/// A graph under construction; one thread at a time. A graph of a module is owned by the module and must not
/// outlive it.
class Graph {
 public:
  explicit Graph(keel_graph* borrowed) : p_(borrowed) {}
  /// graph.hpp: a new graph for GraphScope and Session, on the context and device current now.
  Graph();
  keel_graph* get() const { return p_; }

  /// Adds a parameter. dims: numbers, or handles from Module::dim().
  keel_value param(const std::string& name, keel_dt dtype, std::span<const keel_dim> dims) {
    keel_value out = KEEL_NO_VALUE;
    call(keel_graph_param, p_, name.c_str(), dtype, dims.data(), static_cast<int32_t>(dims.size()), &out);
    return out;
  }
  /// A condition on the symbols of parameters: "b in 2..65536", "b % 8 == 0". A run checks it.
  void rule(const std::string& text) { call(keel_graph_rule, p_, text.c_str()); }
  /// Adds a constant that shares the data of `array`.
  keel_value constant(const Array& array, const char* name = nullptr) {
    keel_value out = KEEL_NO_VALUE;
    call(keel_graph_constant, p_, name, array.get(), &out);
    return out;
  }
  /// Appends a node; a KEEL_NO_VALUE operand is omitted. Error with the reason if shape inference refuses it.
  std::vector<keel_value> node(const std::string& op, std::span<const keel_value> in, uint32_t results = 1,
                               const Attrs& attrs = {}, const char* name = nullptr) {
    std::vector<keel_value> out(results, KEEL_NO_VALUE);
    call(keel_graph_node, p_, name, op.c_str(), 0u, attrs.names(), attrs.data(), attrs.size(), in.data(),
         static_cast<uint32_t>(in.size()), out.data(), results);
    return out;
  }
  void result(const std::string& name, keel_value value) { call(keel_graph_result, p_, name.c_str(), value); }
  /// graph.hpp, for graphs of that kind: adds a result by its tensor; finds a tensor by name ("sum",
  /// "split:1"); the module.
  void result(const std::string& name, const Tensor& tensor);
  Tensor value(const std::string& name) const;
  Module& module() const;
  /// In program order.
  std::vector<Node> nodes() const {
    uint32_t count = 0;
    call(keel_graph_counts, p_, &count, none(), none(), none());
    std::vector<Node> all;
    for (uint32_t i = 0; i < count; i++) all.push_back(node_at(i));
    return all;
  }
  /// Parameters, constants and results of nodes, by number.
  std::vector<Value> values() const {
    uint32_t count = 0;
    call(keel_graph_counts, p_, none(), &count, none(), none());
    std::vector<Value> all;
    for (keel_value v = 0; v < count; v++) {
      int64_t shape[KEEL_MAX_RANK];
      int32_t ndim = 0;
      Value value{v, name_of(v), 0, {}};
      call(keel_graph_value_at, p_, v, nullptr, nullptr, &value.dtype, shape, &ndim);
      value.shape.assign(shape, shape + ndim);
      all.push_back(std::move(value));
    }
    return all;
  }
  /// By its own name or the name of one of its results: "sum", "sum:0". Error KEEL_NOT_FOUND.
  Node node(const std::string& name) const {
    uint32_t found = KEEL_NO_VALUE;
    call(keel_graph_find, p_, name.c_str(), nullptr, &found);
    if (found != KEEL_NO_VALUE) return node_at(found);
    keel_value value = find(name);
    bool parameter = false;
    for (const auto& [param, v] : ports(false)) parameter = parameter || v == value;
    return {name_of(value), parameter ? "parameter" : "constant", {}, {name_of(value)}};
  }
  /// Parameters or results with their names, in order.
  std::vector<std::pair<std::string, keel_value>> ports(bool results) const {
    uint32_t counts[2] = {0, 0};
    call(keel_graph_counts, p_, none(), none(), &counts[0], &counts[1]);
    std::vector<std::pair<std::string, keel_value>> all;
    for (uint32_t i = 0; i < counts[results]; i++) {
      keel_value value = KEEL_NO_VALUE;
      keel_text* name = nullptr;
      call(keel_graph_port, p_, static_cast<int32_t>(results), i, &value, &name);
      all.emplace_back(take_text(name), value);
    }
    return all;
  }
  /// The name that find() accepts; "v12" for the unnamed result of node 12.
  std::string name_of(keel_value value) const {
    keel_text* name = nullptr;
    call(keel_graph_value_at, p_, value, &name, nullptr, nullptr, nullptr, nullptr);
    return take_text(name);
  }
  /// By name, a result's name, "v12" for the unnamed result of node 12, or "split:1". Error KEEL_NOT_FOUND.
  keel_value find(const std::string& name) const {
    keel_value out = KEEL_NO_VALUE;
    call(keel_graph_find, p_, name.c_str(), &out, nullptr);
    return out;
  }
  /// A copy in the same module, with the same value numbers and without results.
  Graph copy(const std::string& name) const {
    keel_graph* out = nullptr;
    call(keel_graph_new, nullptr, name.c_str(), p_, &out);
    return Graph(out);
  }
  /// Appends the gradient of the sum of ys, each weighted by its seed if `seeds` is not empty. Returns one
  /// value per x, of its type; KEEL_NO_VALUE (zeros = true: zeros) where no y depends on it.
  std::vector<keel_value> gradient(std::span<const keel_value> ys, std::span<const keel_value> xs,
                                   std::span<const keel_value> seeds = {}, bool zeros = false) {
    if (!seeds.empty() && seeds.size() != ys.size())
      throw Error(KEEL_INVALID,
                  std::to_string(seeds.size()) + " seeds for " + std::to_string(ys.size()) + " ys");
    std::vector<keel_value> out(xs.size(), KEEL_NO_VALUE);
    call(keel_graph_gradient, p_, ys.data(), static_cast<uint32_t>(ys.size()),
         seeds.empty() ? nullptr : seeds.data(), xs.data(), static_cast<uint32_t>(xs.size()),
         zeros ? KEEL_GRADIENT_ZEROS : 0, out.data());
    return out;
  }
  const std::shared_ptr<detail::OpenGraph>& open() const { return open_; }
  /// Appends the Jacobian of y with respect to x, of shape dims of y + dims of x.
  keel_value jacobian(keel_value y, keel_value x) {
    keel_value out = KEEL_NO_VALUE;
    call(keel_graph_gradient, p_, &y, 1u, nullptr, &x, 1u, KEEL_GRADIENT_JACOBIAN | KEEL_GRADIENT_ZEROS,
         &out);
    return out;
  }

 private:
  static uint32_t* none() { return nullptr; }
  Node node_at(uint32_t i) const {
    keel_text* name = nullptr;
    const char* op = nullptr;
    const keel_value* values[2] = {nullptr, nullptr};
    uint32_t counts[2] = {0, 0};
    call(keel_graph_node_at, p_, i, &name, &op, &values[0], &counts[0], &values[1], &counts[1]);
    Node node{take_text(name), op, {}, {}};
    for (uint32_t k = 0; k < counts[0]; k++)
      node.inputs.push_back(values[0][k] == KEEL_NO_VALUE ? "" : name_of(values[0][k]));
    for (uint32_t k = 0; k < counts[1]; k++) node.outputs.push_back(name_of(values[1][k]));
    return node;
  }
  keel_graph* p_;
  std::shared_ptr<detail::OpenGraph> open_;
};

/// The arrays of one test vector of a file.
struct Case {
  std::vector<Array> in, expected;
};

/// A module: graphs, entries, constants, variables, test vectors. Any thread may use it.
class Module {
 public:
  /// An empty module, for graph().
  explicit Module(const Context& context) {
    keel_module* out = nullptr;
    call(keel_module_new, context.get(), &out);
    handle_.reset(out);
  }
  /// From a .keel file. Error KEEL_NOT_FOUND or KEEL_INVALID with the reason.
  static Module load(const Context& context, const std::string& path) {
    keel_module* out = nullptr;
    call(keel_module_load, context.get(), path.c_str(), &out);
    return Module(out);
  }
  /// From the text form.
  static Module parse(const Context& context, std::string_view text) {
    keel_module* out = nullptr;
    call(keel_module_parse, context.get(), text.data(), static_cast<uint64_t>(text.size()), &out);
    return Module(out);
  }
  /// Through an importer plugin; parameters in `fixed_names` become constants with the values `fixed`.
  static Module import_file(const Context& context, const std::string& path, const Options& options = {},
                            std::span<const std::string> fixed_names = {},
                            std::span<const Array> fixed = {}) {
    std::vector<keel_kv> kv = options.view();
    std::vector<const char*> names;
    for (const std::string& n : fixed_names) names.push_back(n.c_str());
    std::vector<keel_array*> arrays = raw(fixed);
    keel_module* out = nullptr;
    call(keel_module_import, context.get(), path.c_str(), kv.data(), static_cast<uint32_t>(kv.size()),
         names.data(), arrays.data(), static_cast<uint32_t>(arrays.size()), &out);
    return Module(out);
  }
  /// Takes over a handle that the C API returned.
  static Module take(keel_module* made) { return Module(made); }
  keel_module* get() const { return handle_.get(); }

  /// A size for param(): an expression of symbols ("b", "2*b"), created on first use.
  keel_dim dim(const std::string& expression) {
    keel_dim out = 0;
    call(keel_module_dim, get(), expression.c_str(), &out);
    return out;
  }
  /// A new empty graph, owned by the module; nullptr: without a name.
  Graph graph(const char* name = nullptr) {
    keel_graph* out = nullptr;
    call(keel_graph_new, get(), name, nullptr, &out);
    return Graph(out);
  }
  /// The graph of an entry ("": the only entry); also of a loaded module.
  Graph graph_of(const std::string& entry) {
    keel_graph* out = nullptr;
    call(keel_module_graph, get(), entry.empty() ? nullptr : entry.c_str(), &out);
    return Graph(out);
  }
  /// Makes a graph an entry.
  void entry(const std::string& name, const Graph& graph) {
    call(keel_module_entry, get(), name.c_str(), graph.get());
  }

  /// Adds an entry of another module ("": its only entry) to this one, under the name `as`, with its
  /// constants and variables.
  void link(const Module& from, const std::string& entry, const std::string& as) {
    call(keel_module_link, get(), from.get(), entry.empty() ? nullptr : entry.c_str(), as.c_str());
  }
  /// A block per entry: arguments and results with their dtypes and shapes.
  std::string signatures() const {
    keel_text* out = nullptr;
    call(keel_module_report, get(), "signatures", &out);
    return take_text(out);
  }
  /// Writes a .keel file, complete or not at all.
  void save(const std::string& path) const { call(keel_module_save, get(), path.c_str()); }
  /// The text form.
  std::string text() const {
    keel_text* out = nullptr;
    call(keel_module_report, get(), "text", &out);
    return take_text(out);
  }
  /// The text form with long constants abbreviated.
  std::string outline() const {
    keel_text* out = nullptr;
    call(keel_module_report, get(), "outline", &out);
    return take_text(out);
  }
  /// Runs the passes for a device on the graph of an entry; options "level", "passes". Returns JSON: the
  /// passes run.
  std::string optimize(const std::string& entry, const std::string& device, const Options& options = {}) {
    std::vector<keel_kv> kv = options.view();
    keel_text* out = nullptr;
    call(keel_module_optimize, get(), entry.c_str(), device.c_str(), kv.data(),
         static_cast<uint32_t>(kv.size()), &out);
    return take_text(out);
  }
  /// JSON: entries, graphs, op counts, constants, metadata, cases.
  std::string info() const {
    keel_text* out = nullptr;
    call(keel_module_report, get(), "info", &out);
    return take_text(out);
  }
  /// Sets a string of the file's metadata.
  void metadata(const std::string& key, const std::string& value) {
    call(keel_module_metadata, get(), key.c_str(), value.c_str());
  }

  /// Adds a test vector for `keel verify`: inputs, and results compared with |x - y| <= atol + rtol * |y|.
  void add_case(const std::string& name, const std::string& entry, const Case& c, double rtol, double atol) {
    std::vector<keel_array*> in = raw(c.in), expected = raw(c.expected);
    call(keel_module_add_case, get(), name.c_str(), entry.c_str(), in.data(),
         static_cast<uint32_t>(in.size()), expected.data(), static_cast<uint32_t>(expected.size()), rtol,
         atol);
  }
  /// Test vector `index`; the counts must be the entry's.
  Case get_case(uint32_t index, uint32_t n_in, uint32_t n_expected) const {
    std::vector<keel_array*> in(n_in), expected(n_expected);
    call(keel_module_case, get(), index, in.data(), n_in, expected.data(), n_expected);
    return {take_arrays(in), take_arrays(expected)};
  }

 private:
  explicit Module(keel_module* take) : handle_(take) {}
  Handle<keel_module, keel_module_free> handle_;
};

}  // namespace keel
#endif
