// tape.hpp: gradients and Jacobians of computed values.
//
//   keel::Variable w({{1.f}});
//   keel::Tape tape;                                     // records this thread's ops until its end
//   keel::Tensor loss = w * w;                           // reads of trainable variables are watched
//   keel::Tensor dw = tape.gradient(loss, w);            // [[2.]]
//   auto [dx, db] = tape.gradient(loss, std::tuple(x, b));   // structured as the sources
//
// Works eagerly, around calls of functions (gradients flow to the variables that they read) and in traced
// functions, where gradients become nodes. Tapes nest: an outer tape records the ops of an inner one.
//
// How to read it: map_leaves() walks sources; Tape is a handle and its position in the thread's stack of
// tapes.
#ifndef KEEL_TAPE_HPP
#define KEEL_TAPE_HPP
#include "structure.hpp"

namespace keel {

/// A source of a gradient, for lists of sources: {x, w}.
class Source {
 public:
  Source(const Tensor& t) : tensor_(t) {}
  Source(const Variable& v) : variable_(v) {}
  const Tensor& tensor() const { return tensor_; }
  const Variable& variable() const { return variable_; }

 private:
  Tensor tensor_;
  Variable variable_;
};

namespace detail {

template <class T>
inline constexpr bool is_source =
    std::same_as<T, Tensor> || std::same_as<T, Variable> || std::same_as<T, Source>;
template <class T>
inline constexpr bool is_array = false;
template <class T, size_t n>
inline constexpr bool is_array<std::array<T, n>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class... M>
std::tuple<std::decay_t<M>...> values_of(const std::tuple<M...>&);

/// The same structure with leaf(source), a Tensor, for each tensor and variable. A struct with variables
/// becomes the tuple of its members.
template <class T, class Leaf>
auto map_leaves(const T& x, Leaf& leaf) {
  auto each = [&](const auto& member) { return map_leaves(member, leaf); };
  auto tuple = [&](const auto&... member) {
    return std::tuple<decltype(map_leaves(member, leaf))...>{each(member)...};
  };
  if constexpr (is_source<T>) {
    return Tensor(leaf(x));
  } else if constexpr (Number<T> || Text<T> || std::is_enum_v<T>) {
    return x;
  } else if constexpr (is_vector<T>) {
    std::vector<decltype(each(x[0]))> out;
    for (const auto& member : x) out.push_back(each(member));
    return out;
  } else if constexpr (is_array<T>) {
    std::array<decltype(each(x[0])), std::tuple_size_v<T>> out;
    for (size_t k = 0; k < out.size(); k++) out[k] = each(x[k]);
    return out;
  } else if constexpr (is_map<T>) {
    std::map<std::string, decltype(each(x.begin()->second))> out;
    for (const auto& [key, member] : x) out.emplace(key, each(member));
    return out;
  } else if constexpr (is_optional<T>) {
    return x ? std::optional(each(*x)) : std::nullopt;
  } else if constexpr (is_pair<T>) {
    return std::pair<decltype(each(x.first)), decltype(each(x.second))>{each(x.first), each(x.second)};
  } else if constexpr (Tuple<T>) {
    return std::apply(tuple, x);
  } else {
    T out = x;
    auto members = fields_of(out);
    auto mapped = std::apply(tuple, members);
    if constexpr (std::same_as<decltype(values_of(members)), decltype(mapped)>) {
      members = mapped;
      return out;
    } else {
      return mapped;
    }
  }
}

}  // namespace detail

struct TapeOptions {
  bool persistent = false;               // more than one call of gradient()
  bool watch_accessed_variables = true;  // watches trainable variables at their first read
};
struct GradientOptions {
  std::vector<Tensor> seeds =
      {};              // weights of the targets' elements, one tensor per target; none or empty: ones
  bool zeros = false;  // zeros instead of an empty Tensor if no target depends on a source
};

/// Records the ops of one thread, from construction to destruction; tapes end in reverse order. Recorded
/// values stay allocated until gradient() (unless persistent), reset() or the destructor.
class Tape {
 public:
  explicit Tape(const TapeOptions& options = {}) : mine_{nullptr, detail::this_tape} {
    keel_kv kv[] = {{"persistent", options.persistent ? "1" : "0"},
                    {"watch_variables", options.watch_accessed_variables ? "1" : "0"}};
    call(keel_tape_new, detail::here().context(), detail::here().device().c_str(), kv, 2u,
         detail::tape_handle(), &mine_.handle);
    handle_.reset(mine_.handle);
    detail::this_tape = &mine_;
  }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() {
    for (detail::Recorder** at = &detail::this_tape; *at; at = &(*at)->outer)
      if (*at == &mine_) {
        *at = mine_.outer;
        break;
      }
  }
  keel_tape* get() const { return handle_.get(); }

  /// Records ops on `t` from now on. Only floating-point tensors have gradients.
  void watch(const Tensor& t) { call(keel_tape_watch, get(), t.get(), nullptr); }
  /// Records the reads of the variable from now on.
  void watch(const Variable& v) { call(keel_tape_watch, get(), nullptr, v.get()); }
  /// Drops all records and watches; the tape can then be used again.
  void reset() { keel_tape_reset(get()); }

  /// Pauses this tape until the end of the scope; other tapes keep recording. A traced function is one graph
  /// for all tapes around its calls: inside its code the scope hides ops from all of them, as no_record()
  /// does.
  class [[nodiscard]] Stopped {
   public:
    explicit Stopped(keel_tape* tape)
        : tape_(tape),
          outside_(detail::this_trace && !is_recording(tape)),
          mine_{nullptr, detail::this_tape} {
      keel_tape_pause(tape_, 1);
      if (outside_) detail::this_tape = &mine_;
    }
    Stopped(const Stopped&) = delete;
    Stopped& operator=(const Stopped&) = delete;
    ~Stopped() {
      keel_tape_pause(tape_, 0);
      if (outside_) detail::this_tape = mine_.outer;
    }

   private:
    static bool is_recording(keel_tape* tape) {
      const detail::Recorder* at = detail::this_tape;
      while (at && at->handle != tape) at = at->outer;
      return at != nullptr;
    }
    keel_tape* tape_;
    bool outside_;  // the tape is outside of the trace in progress
    detail::Recorder mine_;
  };
  Stopped stop_recording() { return Stopped(get()); }

 private:
  struct Request {
    std::vector<Array> ys;
    std::vector<keel_array*> xs;
    std::vector<keel_variable*> variables;  // where xs is null
    template <class T>
    Tensor target(const T& y) {
      ys.push_back(Tensor(y).array());
      return {};
    }
    Tensor source(const Tensor& t) { return source(t.get(), nullptr); }
    Tensor source(const Variable& v) { return source(nullptr, v.get()); }
    Tensor source(const Source& s) { return source(s.tensor().get(), s.variable().get()); }
    Tensor source(keel_array* x, keel_variable* v) {
      xs.push_back(x);
      variables.push_back(v);
      return {};
    }
  };
  template <class X, class Fill>
  static auto collect(Request& request, const X& sources, const Fill& fill) {
    auto source = [&](const auto& x) { return request.source(x); };
    detail::map_leaves(sources, source);
    std::vector<keel_array*> out(request.xs.size());
    fill(out.data());
    std::vector<Array> found = take_arrays(out);
    size_t next = 0;
    auto take = [&](const auto&) { return Tensor(std::move(found[next++])); };
    return detail::map_leaves(sources, take);
  }

 public:
  /// The gradient of the sum of all elements of all targets (a tensor or a structure of tensors), structured
  /// as the sources (tensors and variables); each has the dtype and shape of its source. An empty Tensor if
  /// no target depends on the source. Error KEEL_PRECONDITION at a second call, unless persistent.
  template <class Y, class X>
  auto gradient(const Y& targets, const X& sources, const GradientOptions& options = {}) {
    Request request;
    auto target = [&](const auto& y) { return request.target(y); };
    detail::map_leaves(targets, target);
    return collect(request, sources, [&](keel_array** out) { run(request, options, out); });
  }
  template <class Y>
  std::vector<Tensor> gradient(const Y& targets, std::initializer_list<Source> sources,
                               const GradientOptions& options = {}) {
    return gradient(targets, std::vector<Source>(sources), options);
  }
  /// The Jacobian of one target for each source: of shape dims of the target + dims of the source, at most 8
  /// dims. An empty Tensor (zeros: zeros) if the target does not depend on the source. Costs one gradient per
  /// element of the target; counts as one use of the tape.
  template <class X>
  auto jacobian(const Tensor& target, const X& sources, bool zeros = false) {
    Request request;
    return collect(request, sources, [&](keel_array** out) {
      keel_array* y = target.get();
      call(keel_tape_gradient, get(), &y, 1u, nullptr, request.xs.data(), request.variables.data(),
           static_cast<uint32_t>(request.xs.size()),
           KEEL_GRADIENT_JACOBIAN | (zeros ? KEEL_GRADIENT_ZEROS : 0), out);
    });
  }
  std::vector<Tensor> jacobian(const Tensor& target, std::initializer_list<Source> sources,
                               bool zeros = false) {
    return jacobian(target, std::vector<Source>(sources), zeros);
  }

 private:
  void run(const Request& request, const GradientOptions& options, keel_array** out) {
    std::vector<keel_array*> ys = raw(request.ys), seeds;
    for (const Tensor& seed : options.seeds) seeds.push_back(seed.get());
    if (!seeds.empty() && seeds.size() != ys.size())
      throw Error(KEEL_INVALID,
                  std::to_string(seeds.size()) + " seeds for " + std::to_string(ys.size()) + " targets");
    call(keel_tape_gradient, get(), ys.data(), static_cast<uint32_t>(ys.size()),
         seeds.empty() ? nullptr : seeds.data(), request.xs.data(), request.variables.data(),
         static_cast<uint32_t>(request.xs.size()), options.zeros ? KEEL_GRADIENT_ZEROS : 0, out);
  }

  Handle<keel_tape, keel_tape_free> handle_;
  detail::Recorder mine_;
};

/// No tape of this thread records until the end of the scope; in a traced function no gradient passes through
/// ops in the scope.
class [[nodiscard]] NoRecord {
 public:
  NoRecord() { detail::this_tape = &mine_; }
  NoRecord(const NoRecord&) = delete;
  NoRecord& operator=(const NoRecord&) = delete;
  ~NoRecord() { detail::this_tape = mine_.outer; }

 private:
  detail::Recorder mine_{nullptr, detail::this_tape};
};
inline NoRecord no_record() { return NoRecord(); }

/// As tape.jacobian().
template <class X>
auto jacobian(Tape& tape, const Tensor& target, const X& sources, bool zeros = false) {
  return tape.jacobian(target, sources, zeros);
}
/// The Jacobian at x of code, or a keel::function, from one tensor to one tensor; zeros for independent
/// elements.
template <class Code>
requires std::convertible_to<std::invoke_result_t<const Code&, const Tensor&>, Tensor> Tensor
jacobian(const Code& code, const Tensor& x) {
  Tape tape;
  tape.watch(x);
  return tape.jacobian(code(x), x, true);
}

}  // namespace keel
#endif
