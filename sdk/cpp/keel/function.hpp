// function.hpp: C++ code that is traced once per signature of its arguments and then runs as a graph.
//
//   auto f = keel::function("f", [](const keel::Tensor& x, int n) {
//     keel::Tensor y = x;
//     for (int i = 1; i < n; i++) y = keel::matmul(y, x);   // unrolled: n is a static value
//     return y;
//   });
//   keel::Tensor y = f(x, 100);          // traces; the next call with these types and n = 100 does not
//   f.concrete(x, 100).save("f.keel");   // the graph, as a file
//
// Arguments: tensors (by dtype and shape) and static values (by type and value), in any structure that
// structure.hpp walks. Results: tensors, tuples, structs, one vector of tensors. Exceptions of the code pass
// through the call unchanged. During a trace each op becomes a node, also an op on captured tensors alone:
// their elements can be read, results of ops on them cannot. run_eagerly() runs the code on numbers instead.
#ifndef KEEL_FUNCTION_HPP
#define KEEL_FUNCTION_HPP
#include <array>
#include <exception>
#include <functional>

#include "keel/mutex.hpp"
#include "module.hpp"
#include "operators.hpp"
#include "structure.hpp"

namespace keel {

/// All are optional. signature, any_after, check_captures, max_traces: see keel_function_new in keel.h.
struct FunctionOptions {
  std::vector<std::string> args = {}, results = {};  // names of arguments and results in messages and modules
  std::string signature = "";   // "x: f32[b, 784] where b % 8 == 0": one trace for all calls
  std::string any_after = "";   // number of sizes after which a dim becomes a symbol; "never"
  bool check_captures = false;  // an error if a capture of the code has changed
  Options more = {};            // max_traces, threads, memory, timeout_ms, level, passes, exact_convolution
};

namespace detail {

// A call in progress on this thread; the callback of a keel_function finds its code here.
struct Invocation {
  void (*run)(Invocation&, std::span<const keel_leaf>, keel_trace*) = nullptr;
  struct Thrown {
    std::string text;
    std::exception_ptr what;
  };
  std::vector<Thrown> thrown = {};  // by the code; a call may trace more than once
  keel_rc code = KEEL_INVALID;      // of exceptions other than Error; KEEL_CANCELLED ends the call
  std::string why = {};
};
inline constinit thread_local Invocation* this_call = nullptr;
inline constinit thread_local int eager_scopes = 0;
inline std::atomic<bool> eager_process{false};

class BodyScope {  // the thread state for a body; tapes around a call do not record inside its trace
 public:
  BodyScope(Home& home, keel_trace* trace, Recorder* tape)
      : home_(home),
        before_(std::exchange(this_trace, trace)),
        took_all_(std::exchange(trace_takes_all, true)),
        tape_(std::exchange(this_tape, tape)) {}
  ~BodyScope() { this_trace = before_, trace_takes_all = took_all_, this_tape = tape_; }
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

 private:
  Scope home_;
  keel_trace* before_;
  bool took_all_;
  Recorder* tape_;
};

inline keel_rc run_program(void*, keel_trace* trace, const keel_leaf* leaves, uint32_t n,
                           keel_error** error) {
  Invocation& mine = *this_call;
  const auto fail = [&](keel_rc code, const char* text) {
    mine.thrown.push_back({text, std::current_exception()});
    return keel_error_new(code, text, error);
  };
  try {
    mine.run(mine, {leaves, n}, trace);
  } catch (const Error& e) {
    return fail(e.code(), e.what());
  } catch (const std::exception& e) {
    return fail(mine.code, mine.why.empty() ? e.what() : mine.why.c_str());
  } catch (...) {
    return fail(mine.code, "the code threw an exception");
  }
  return KEEL_OK;
}

// The exception of the code that caused this failure; null if the failure is of Keel itself.
inline std::exception_ptr find_thrown(const Invocation& mine, const Error& failure) {
  const std::string_view message = failure.what();
  for (auto it = mine.thrown.rbegin(); it != mine.thrown.rend(); ++it)
    if (message.find(it->text) != message.npos) return it->what;
  return failure.code() == KEEL_CANCELLED && !mine.thrown.empty() ? mine.thrown.back().what : nullptr;
}

inline keel_rc call_function(keel_function* f, const Leaves& leaves, keel_array** out, uint32_t room,
                             uint32_t* n, keel_error** error) {
  const char* structure = leaves.structure.c_str();
  const keel_leaf* list = leaves.list.data();
  auto count = static_cast<uint32_t>(leaves.list.size());
  keel_rc rc = keel_function_call(f, this_trace, tape_handle(), structure, list, count, out, room, n, error);
  return rc == KEEL_OK ? cut({out, *n}, error) : rc;
}

/// A member of an object of libkeel's JSON, as text: a string, a number, or a list in JSON.
inline std::string member(std::string_view object, const std::string& name) {
  size_t at = object.find("\"" + name + "\":");
  if (at == std::string_view::npos) return "";
  at += name.size() + 3;
  if (object[at] == '[') return std::string(object.substr(at, object.find(']', at) + 1 - at));
  if (object[at] != '"') return std::string(object.substr(at, object.find_first_of(",}", at) - at));
  std::string out;
  for (at++; at < object.size() && object[at] != '"'; at++) {
    if (object[at] == '\\') at++;
    out += object[at];
  }
  return out;
}

// The result type of a call: numbers become tensors.
template <class R>
using Returned = std::conditional_t<Number<R>, Tensor, R>;

/// The part of a Function that does not depend on the type of its code.
class FunctionState {
 public:
  FunctionState(const std::string& name, const FunctionOptions& o) : options(o), home(here()) {
    Options all = o.more;
    if (!o.signature.empty()) all.set("signature", o.signature);
    if (!o.any_after.empty()) all.set("any_after", o.any_after);
    if (o.check_captures) all.set("check_captures", "1");
    std::vector<keel_kv> kv = all.view();
    keel_function* out = nullptr;
    call(keel_function_new, home.context(), name.c_str(), home.device().c_str(), kv.data(),
         static_cast<uint32_t>(kv.size()), run_program, static_cast<void*>(nullptr),
         static_cast<void (*)(void*)>(nullptr), &out);
    handle.reset(out);
  }
  FunctionOptions options;
  Home& home;
  Handle<keel_function, keel_function_free> handle;

  /// Leaves of all arguments, with their names.
  template <class... A>
  Leaves flatten(const A&... args) {
    Leaves leaves;
    leaves.list.reserve(8);
    (each_leaf(args, leaves), ...);
    if (leaves.structure.find('<') == std::string::npos && options.args.empty())
      return leaves;  // Keel's default names suffice
    const std::vector<std::string>& names = names_of(leaves, args...);
    for (size_t k = 0; k < names.size(); k++) leaves.list[k].name = names[k].c_str();
    return leaves;
  }

 private:
  // Cached by structure: most calls repeat one.
  template <class... A>
  const std::vector<std::string>& names_of(const Leaves& leaves, const A&... args) {
    {
      std::lock_guard lock(mutex_);
      if (auto found = names_.find(leaves.structure); found != names_.end()) return found->second;
    }
    std::vector<std::string> names;
    size_t k = 0;
    [[maybe_unused]] auto add = [&](const auto& arg) {
      Paths paths;
      each_leaf(arg, paths);
      std::string base = k < options.args.size() ? options.args[k] : "x" + std::to_string(k);
      for (const std::string& path : paths.list) names.push_back(base + path);
      k++;
    };
    (add(args), ...);
    std::lock_guard lock(mutex_);
    return names_.try_emplace(leaves.structure, std::move(names)).first->second;  // never erased
  }
  Mutex mutex_;
  std::map<std::string, std::vector<std::string>, std::less<>> names_;
};

}  // namespace detail

/// Made by keel::function(). Copies share their traces; any thread may call it.
template <class Code>
class Function {
 public:
  Function(const std::string& name, Code code, const FunctionOptions& options)
      : code_(std::make_shared<const Code>(std::move(code))),
        state_(std::make_shared<detail::FunctionState>(name, options)) {}

  /// Runs the graph for the signature of these arguments, traced at its first call. Throws the exceptions of
  /// the code, and Error for failures of the run.
  template <class... A>
  requires std::invocable<const Code&, const A&...>
  auto operator()(const A&... args) const
      -> detail::Returned<std::decay_t<std::invoke_result_t<const Code&, const A&...>>> {
    using Result = std::decay_t<std::invoke_result_t<const Code&, const A&...>>;
    if (detail::eager_scopes > 0 || detail::eager_process.load(std::memory_order_relaxed)) {
      detail::BodyScope body(state_->home, detail::this_trace, detail::this_tape);
      return (*code_)(args...);
    }
    detail::Leaves leaves = state_->flatten(args...);
    detail::Count wanted;
    if constexpr (!std::is_void_v<Result>) {
      detail::Returned<Result> like{};
      detail::each_leaf(like, wanted);
    }
    std::array<keel_array*, 256> out;
    uint32_t room = wanted.vectors ? 256 : static_cast<uint32_t>(wanted.tensors), n = 0;
    perform([&](auto err) { return detail::call_function(get(), leaves, out.data(), room, &n, err); },
            args...);
    if constexpr (!std::is_void_v<Result>) {
      detail::Returned<Result> result{};
      if constexpr (std::same_as<decltype(result), Tensor>) {
        result = Tensor(Array(out[0]));
      } else {
        detail::Replace put(take_arrays({out.begin(), out.begin() + n}), wanted.tensors);
        detail::each_leaf(result, put);
      }
      return result;
    }
  }

  /// The graph for these arguments, traced if necessary, as the only entry of a new module.
  template <class... A>
  Module concrete(const A&... args) const {
    detail::Leaves leaves = state_->flatten(args...);
    keel_module* out = nullptr;
    perform(
        [&](auto err) {
          return keel_function_module(get(), leaves.structure.c_str(), leaves.list.data(),
                                      static_cast<uint32_t>(leaves.list.size()), &out, nullptr, err);
        },
        args...);
    return Module::take(out);
  }
  /// The graph of an existing trace by its number in report(), from 0, as a module. Error KEEL_NOT_FOUND past
  /// the last.
  Module trace(uint32_t number) const {
    keel_module* out = nullptr;
    call(keel_function_trace, get(), number, &out);
    return Module::take(out);
  }
  /// JSON: the traces, each with signature, reason, trace_ms, plan_ms, calls.
  std::string report() const {
    keel_text* out = nullptr;
    call(keel_function_report, get(), "report", &out);
    return take_text(out);
  }
  /// A block per trace: the call, its arguments and results with their dtypes and shapes.
  std::string signatures() const {
    keel_text* out = nullptr;
    call(keel_function_report, get(), "signatures", &out);
    return take_text(out);
  }
  /// The reason of each trace, and its captures; for people.
  std::string explain() const {
    std::string json = report(), out;
    int64_t traces = 0, calls = 0;
    for (size_t at = 0; (at = json.find("{\"signature\":", at)) != std::string::npos; at++) {
      size_t end = std::min(json.find("{\"signature\":", at + 1), json.size());
      std::string_view one = std::string_view(json).substr(at, end - at);
      out += std::to_string(++traces) + ". " + detail::member(one, "signature") + ", " +
             detail::member(one, "calls") + " calls\n   why: " + detail::member(one, "reason") + "\n";
      calls += std::atoll(detail::member(one, "calls").c_str());
      for (const char* kind : {"variables", "captures"})
        if (std::string list = detail::member(one, kind); list.size() > 2)
          out += "   " + (kind + (": " + list)) + "\n";
    }
    if (traces >= 5 && traces * 2 > calls)
      out +=
          "most calls are traced: pass tensors in place of numbers that change, or give a signature, as in "
          "{.signature = \"x: f32[n]\"}\n";
    return out;
  }
  /// The number of traces so far, including dropped ones.
  int64_t trace_count() const {
    std::string text = report();
    int64_t n = 0;
    for (size_t at = 0; (at = text.find("{\"signature\":", at)) != std::string::npos; at++) n++;
    return n + std::atoll(text.c_str() + text.rfind("\"dropped\":") + 10);
  }
  /// Calls of this function run its code on numbers, without a trace.
  void run_eagerly(bool on = true) const { keel_run_eagerly(nullptr, get(), on); }
  keel_function* get() const { return state_->handle.get(); }

 private:
  template <class... A>
  struct Typed : detail::Invocation {
    const Function& of;
    std::tuple<const A&...> args;
  };

  // Runs the code on copies of the arguments, with the tensors of the trace.
  template <class... A>
  static void run(detail::Invocation& erased, std::span<const keel_leaf> leaves, keel_trace* trace) {
    auto& mine = static_cast<Typed<A...>&>(erased);
    const Function& f = mine.of;
    detail::BodyScope body(f.state_->home, trace, detail::is_taped(trace) ? detail::this_tape : nullptr);
    std::tuple<std::decay_t<const A>...> copies(mine.args);
    detail::Replace put(leaves);
    std::apply([&](auto&... copy) { (detail::each_leaf(copy, put), ...); }, copies);
    using Result = std::decay_t<std::invoke_result_t<const Code&, const A&...>>;
    if constexpr (std::is_void_v<Result>) {
      std::apply(*f.code_, copies);
    } else {
      const detail::Returned<Result> result = std::apply(*f.code_, copies);
      detail::Leaves out;
      detail::each_leaf(result, out);
      for (size_t k = 0; k < out.list.size(); k++) {
        if (!out.list[k].array) throw Error(KEEL_INVALID, "a result of the function is an empty Tensor");
        const auto& names = f.state_->options.results;
        call(keel_trace_result, trace, k < names.size() ? names[k].c_str() : nullptr, out.list[k].array);
      }
    }
  }

  template <class Call, class... A>
  void perform(const Call& what, const A&... args) const {
    Typed<A...> mine{{run<A...>}, *this, {args...}};
    detail::Invocation* before = std::exchange(detail::this_call, &mine);
    keel_error* error = nullptr;
    keel_rc rc = what(&error);
    detail::this_call = before;
    if (rc == KEEL_OK) return;
    Error failure = Error::take(rc, error);
    if (std::exception_ptr thrown = detail::find_thrown(mine, failure)) std::rethrow_exception(thrown);
    throw failure;
  }

  std::shared_ptr<const Code> code_;
  std::shared_ptr<detail::FunctionState> state_;
};

/// A traced function on the context and device current now. Copies share their traces; any thread may call
/// it. `code` is copied or moved in. It runs again for each new signature, and must not modify its captures.
template <class Code>
Function<std::decay_t<Code>> function(const std::string& name, Code&& code,
                                      const FunctionOptions& options = {}) {
  return {name, std::forward<Code>(code), options};
}

/// All functions of the process, or of a context, run their code on numbers at each call, for a debugger.
inline void run_eagerly(bool on = true) { detail::eager_process = on; }
inline void run_eagerly(const Context& context, bool on = true) {
  keel_run_eagerly(context.get(), nullptr, on);
}
/// The same for this thread, until the end of the scope.
class [[nodiscard]] Eagerly {
 public:
  Eagerly() { detail::eager_scopes++; }
  Eagerly(const Eagerly&) = delete;
  Eagerly& operator=(const Eagerly&) = delete;
  ~Eagerly() { detail::eager_scopes--; }
};

}  // namespace keel
#endif
