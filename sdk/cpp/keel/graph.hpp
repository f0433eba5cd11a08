// graph.hpp: graphs written as C++ code on tensors, and sessions that run parts of them, in the style of
// TensorFlow 1.
//
//   keel::Graph g;
//   keel::GraphScope in(g);                              // the default graph of this thread from here on
//   keel::Tensor x = keel::placeholder(KEEL_F32, {-1, 784}, "x");
//   keel::Tensor y = keel::named(keel::relu(x - 1), "y");
//   keel::Session session(g);
//   keel::Tensor value = session.run(y, {{x, numbers}});   // or session.run("y:0", {{"x", numbers}})
//
// How to read it: OpenGraph and the scopes, functions that add values, then Session::run. Each value has a
// name: an explicit one, which must be unused, or that of its op (name, name_1, name_2). Ops on concrete
// tensors still run immediately: keel::constant() adds a number to the graph.
#ifndef KEEL_GRAPH_HPP
#define KEEL_GRAPH_HPP
#include <algorithm>
#include <array>
#include <map>

#include "operators.hpp"
#include "session.hpp"
#include "structure.hpp"

namespace keel {

namespace detail {
struct OpenGraph {
  Home& home;
  Handle<keel_trace, keel_trace_free> trace;
  Module module;
  keel_graph* graph;
  std::string scope = "";  // prefix of names
  int64_t sizes = 0;       // generated symbols

  keel_value number_of(const Tensor& t) const {
    keel_value out = KEEL_NO_VALUE;
    call(keel_trace_value, trace.get(), t.get(), &out);
    return out;
  }
  Tensor tensor(keel_value v) const {
    keel_array* out = nullptr;
    call(keel_trace_array, trace.get(), v, &out);
    return Tensor(Array(out));
  }
  void names(const std::string& prefix) {
    call(keel_trace_names, trace.get(), prefix.c_str());
    scope = prefix;
  }
};
inline constinit thread_local const Graph* this_graph = nullptr;
inline constinit thread_local const Session* this_session = nullptr;

inline keel_trace* new_trace(Home& home) {
  keel_trace* out = nullptr;
  call(keel_trace_new, home.context(), "graph", home.device().c_str(), &out);
  return out;
}
inline Module module_of(keel_trace* trace) {
  keel_module* out = nullptr;
  call(keel_trace_module, trace, &out);
  return Module::take(out);
}
inline OpenGraph& need_open(const Graph& graph) {
  if (graph.open()) return *graph.open();
  throw Error(KEEL_PRECONDITION, "a graph of a module has no tensors, only values",
              "create the graph with keel::Graph g;");
}
/// The graph that this thread writes; null while it runs eagerly or traces a function.
inline OpenGraph* writing() {
  OpenGraph* open = this_graph ? this_graph->open().get() : nullptr;
  return open && open->trace.get() == this_trace ? open : nullptr;
}
}  // namespace detail

inline Graph::Graph() : p_(nullptr) {
  detail::Home& home = detail::here();
  Handle<keel_trace, keel_trace_free> trace(detail::new_trace(home));
  Module module = detail::module_of(trace.get());
  p_ = module.graph_of("").get();
  open_ =
      std::make_shared<detail::OpenGraph>(detail::OpenGraph{home, std::move(trace), std::move(module), p_});
  open_->names("");
}
inline Module& Graph::module() const { return detail::need_open(*this).module; }
inline Tensor Graph::value(const std::string& name) const {
  return detail::need_open(*this).tensor(find(name));
}
inline void Graph::result(const std::string& name, const Tensor& tensor) {
  result(name, detail::need_open(*this).number_of(tensor));
}

/// The default graph of this thread until the end of the scope: placeholders, constants, and ops on tensors
/// of the graph are added to it. Scopes must end in reverse order, on their thread. One thread at a time per
/// graph.
class [[nodiscard]] GraphScope {
 public:
  explicit GraphScope(const Graph& graph)
      : graph_(graph),
        home_(detail::need_open(graph).home),
        graph_before_(std::exchange(detail::this_graph, &graph_)),
        trace_before_(std::exchange(detail::this_trace, graph.open()->trace.get())),
        took_all_(std::exchange(detail::trace_takes_all, false)) {}
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;
  ~GraphScope() {
    detail::this_graph = graph_before_;
    detail::this_trace = trace_before_;
    detail::trace_takes_all = took_all_;
  }

 private:
  Graph graph_;
  Scope home_;
  const Graph* graph_before_;
  keel_trace* trace_before_;
  bool took_all_;
};

/// The graph of the innermost GraphScope of this thread; Error KEEL_PRECONDITION if there is none.
inline Graph default_graph() {
  if (detail::this_graph) return *detail::this_graph;
  throw Error(KEEL_PRECONDITION, "there is no default graph: this thread runs eagerly",
              "keel::Graph g; keel::GraphScope in(g); makes one");
}
/// Whether ops of this thread run immediately. False in a GraphScope, and while a function is traced.
inline bool executing_eagerly() { return !detail::this_trace; }

/// NameScope("layer1"): names of new values begin with "layer1/" until its end; without effect outside a
/// graph.
class [[nodiscard]] NameScope {
 public:
  explicit NameScope(const std::string& name) : open_(detail::writing()) {
    if (!open_) return;
    before_ = open_->scope;
    open_->names(before_ + name + "/");
  }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  ~NameScope() {
    if (open_) keel_trace_names(open_->trace.get(), (open_->scope = before_).c_str(), nullptr);
  }

 private:
  detail::OpenGraph* open_;
  std::string before_;
};

/// A size of a placeholder: a number, -1 (taken from the feed), or a symbol: {"b", 784}.
struct Size {
  Size(std::integral auto n) : number(static_cast<int64_t>(n)) {}
  Size(const char* symbol) : text(symbol) {}
  int64_t number = -1;
  std::string text = "";
};

/// A value that each run must feed. Error KEEL_PRECONDITION outside a GraphScope.
inline Tensor placeholder(keel_dt dtype, const std::vector<Size>& shape, const std::string& name = "",
                          const Place& where = Place::current()) {
  detail::OpenGraph* open = detail::writing();
  if (!open)
    throw Error(KEEL_PRECONDITION, "keel::placeholder() is not compatible with eager execution.",
                "write a graph, with keel::GraphScope, or call ops on tensors that have values")
        .within("", where);
  std::vector<keel_dim> dims;
  for (const Size& size : shape) {
    std::string symbol = size.text.empty() ? "d" + std::to_string(open->sizes) : size.text;
    dims.push_back(size.number);
    if (size.number >= 0) continue;
    open->sizes += size.text.empty();
    call(keel_trace_dim, open->trace.get(), symbol.c_str(), 0, &dims.back());
  }
  keel_array* out = nullptr;
  call(keel_trace_param, open->trace.get(), name.c_str(), dtype, dims.data(),
       static_cast<int32_t>(dims.size()), &out);
  return Tensor(Array(out));
}

/// In a graph: a constant of that name. Eagerly: a tensor; the name is ignored. dtype 0: the value's default.
inline Tensor constant(const Operand& value, const std::string& name = "", keel_dt dtype = 0) {
  static constexpr keel_dt kOwn[] = {KEEL_BOOL, KEEL_I32, KEEL_I64, KEEL_F32};
  Array array;
  if (value.weak())
    array = value.settle(detail::here().context(), dtype ? dtype : kOwn[value.kind()]);
  else
    array = Array(keel_array_retain(value.get()));
  detail::OpenGraph* open = detail::writing();
  if (!open) return Tensor(std::move(array));
  keel_array* out = nullptr;
  call(keel_trace_constant, open->trace.get(), name.c_str(), array.get(), &out);
  return Tensor(Array(out));
}

/// Renames a tensor of the graph. The name must be unused; with `unique` a number is appended. No effect on a
/// tensor with a value.
inline Tensor named(const Tensor& tensor, const std::string& name, bool unique = false) {
  if (detail::OpenGraph* open = detail::writing(); open && tensor.symbolic())
    call(keel_trace_rename, open->trace.get(), tensor.get(), name.c_str(), static_cast<int32_t>(unique));
  return tensor;
}

/// A value for one run, in place of any tensor of the graph, given as a tensor or by name. Other dtypes of
/// the same kind are cast (f64 to f32).
class Feed {
 public:
  Feed(const Tensor& of, const Operand& value) : of_(of), value_(array_of(value, of.dtype())) {}
  Feed(std::string name, const Operand& value)
      : name_(std::move(name)), value_(array_of(value, value.weak() ? kWidest[value.kind()] : 0)) {}
  Feed(const char* name, const Operand& value) : Feed(std::string(name), value) {}
  const Tensor& of() const { return of_; }
  const std::string& name() const { return name_; }
  const Array& value() const { return value_; }

 private:
  static constexpr keel_dt kWidest[] = {KEEL_BOOL, KEEL_I64, KEEL_I64, KEEL_F64};  // the session casts them
  static Array array_of(const Operand& value, keel_dt dtype) {
    if (value.weak()) return value.settle(detail::here().context(), dtype);
    return Array(keel_array_retain(value.get()));
  }
  Tensor of_;
  std::string name_;
  Array value_;
};
class Feeds {
 public:
  Feeds() = default;
  Feeds(std::initializer_list<Feed> list) : list_(list) {}
  Feeds(std::vector<Feed> list) : list_(std::move(list)) {}
  const std::vector<Feed>& list() const { return list_; }

 private:
  std::vector<Feed> list_;
};

namespace detail {

/// Walks the fetches twice: want() collects the names, give() fills in the values.
struct Fetching {
  OpenGraph* graph;
  std::vector<std::string> names, targets = {};
  std::vector<Array> got = {};
  std::vector<size_t> places = {};  // index in `names` of each fetch; each name is fetched once
  size_t next = 0;

  std::string name_of(const Tensor& t) const {
    if (graph) return Graph(graph->graph).name_of(graph->number_of(t));
    throw Error(KEEL_INVALID, "the session of a module fetches and feeds by name, not by tensor");
  }
  void add(std::string name) {
    places.push_back(static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    if (places.back() == names.size()) names.push_back(std::move(name));
  }
  template <class F>
  void want(const F& f) {
    if constexpr (std::same_as<F, Tensor>)
      add(name_of(f));
    else if constexpr (std::same_as<F, Node>)
      targets.push_back(f.name);
    else if constexpr (Text<F>)
      add(std::string(std::string_view(f)));
    else if constexpr (is_map<F>)
      for (const auto& [key, value] : f) want(value);
    else if constexpr (Tuple<F>)
      std::apply([&](const auto&... each) { (want(each), ...); }, f);
    else
      for (const auto& each : f) want(each);
  }
  template <class F>
  auto give(const F& f) {
    if constexpr (std::same_as<F, Node>) {
      return none;
    } else if constexpr (std::same_as<F, Tensor> || Text<F>) {
      return Tensor(got.at(places.at(next++)));
    } else if constexpr (is_map<F>) {
      std::map<std::string, decltype(give(f.begin()->second))> out;
      for (const auto& [key, value] : f) out.emplace(key, give(value));
      return out;
    } else if constexpr (Tuple<F>) {
      return std::apply(
          [&](const auto&... each) { return std::tuple<decltype(give(each))...>{give(each)...}; }, f);
    } else {
      std::vector<decltype(give(*f.begin()))> out;
      for (const auto& each : f) out.push_back(give(each));
      return out;
    }
  }
};

}  // namespace detail

inline Session::Session(const Graph& graph, const std::string& device, const Options& options)
    : Session(detail::need_open(graph).module,
              device.empty() ? detail::need_open(graph).home.device() : device, options) {
  graph_ = graph.open();
}
inline Session::Session() : Session(default_graph()) {}

template <class Fetch>
auto Session::run(const Fetch& fetch, const Feeds& feeds, const std::vector<std::string>& targets) const {
  detail::Fetching fetching{graph_.get(), {}};
  std::vector<std::string> fed;
  std::vector<keel_array*> in;
  for (const Feed& feed : feeds.list()) {
    fed.push_back(feed.of().empty() ? feed.name() : fetching.name_of(feed.of()));
    in.push_back(feed.value().get());
  }
  fetching.want(fetch);
  fetching.targets.insert(fetching.targets.end(), targets.begin(), targets.end());
  std::vector<const char*> f = c_strings(fed), r = c_strings(fetching.names), t = c_strings(fetching.targets);
  std::vector<keel_array*> out(r.size());
  static constexpr const char* kNothing[1] = {};  // NULL would mean all of the entry
  call(keel_session_run, get(), f.empty() ? kNothing : f.data(), in.data(), static_cast<uint32_t>(in.size()),
       r.empty() ? kNothing : r.data(), out.data(), static_cast<uint32_t>(out.size()), t.data(),
       static_cast<uint32_t>(t.size()));
  fetching.got = take_arrays(out);
  return fetching.give(fetch);
}
template <class Fetch>
auto Session::run(const Fetch& fetch) const {
  return run(fetch, Feeds());
}

/// The session of keel::eval() on this thread until the end of the scope; `session` must outlive it.
class [[nodiscard]] SessionScope {
 public:
  explicit SessionScope(const Session& session) : before_(std::exchange(detail::this_session, &session)) {}
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;
  ~SessionScope() { detail::this_session = before_; }

 private:
  const Session* before_;
};

/// A session that is the default of its thread during its lifetime.
class InteractiveSession : public Session {
 public:
  InteractiveSession() : scope_(*this) {}
  explicit InteractiveSession(const Graph& graph, const std::string& device = "", const Options& options = {})
      : Session(graph, device, options), scope_(*this) {}

 private:
  SessionScope scope_;
};

/// run() of the default session; Error KEEL_PRECONDITION if there is none.
template <class Fetch>
auto eval(const Fetch& fetch, const Feeds& feeds = {}) {
  if (!detail::this_session)
    throw Error(KEEL_PRECONDITION, "keel::eval() has no default session",
                "keel::SessionScope in(session); or session.run(tensor)");
  return detail::this_session->run(fetch, feeds);
}

}  // namespace keel
#endif
