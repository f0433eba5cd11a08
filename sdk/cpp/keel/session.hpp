// session.hpp: runs graphs of a module on a device.
//
// How to read it: a Session belongs to one device; prepare() fixes feeds and fetches in a Plan, which any
// number of threads may run concurrently. run() (graph.hpp) takes tensors and names, in any structure.
#ifndef KEEL_SESSION_HPP
#define KEEL_SESSION_HPP
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "module.hpp"

namespace keel {

/// Called after each launch of an observed plan; returns true to stop the run.
using Observer = std::function<bool(const keel_event&)>;

/// A prepared run: fixed feeds and fetches. Any number of threads may run it concurrently.
class Plan {
 public:
  explicit Plan(keel_plan* take) : handle_(take) {}
  keel_plan* get() const { return handle_.get(); }
  uint32_t inputs() const {
    uint32_t n = 0;
    keel_plan_counts(get(), &n, nullptr);
    return n;
  }
  uint32_t outputs() const {
    uint32_t n = 0;
    keel_plan_counts(get(), nullptr, &n);
    return n;
  }

  /// Inputs in the order of the feeds (dtypes and shapes are checked); returns the results in the order of
  /// the fetches.
  std::vector<Array> run(std::span<const Array> in) const {
    std::vector<keel_array*> ins = raw(in), outs(outputs());
    call(keel_plan_run, get(), ins.data(), static_cast<uint32_t>(ins.size()), outs.data(),
         static_cast<uint32_t>(outs.size()));
    return take_arrays(outs);
  }

  /// For plans of a session with the option "observe" or "profile" = "1". An exception of the observer stops
  /// the run and is rethrown; a run stopped by the observer returns an empty list.
  std::vector<Array> run_observed(std::span<const Array> in, const Observer& observer) const {
    struct ObserverState {
      const Observer& observer;
      std::exception_ptr thrown;
      bool stopped = false;
    } state{observer, nullptr};
    keel_observer trampoline = [](void* arg, const keel_event* event) -> int32_t {
      ObserverState& b = *static_cast<ObserverState*>(arg);
      try {
        b.stopped = b.observer(*event);
      } catch (...) {
        b.thrown = std::current_exception();
      }
      return b.stopped || b.thrown;
    };
    std::vector<keel_array*> ins = raw(in), outs(outputs());
    keel_error* error = nullptr;
    keel_rc rc = keel_plan_run_observed(get(), ins.data(), static_cast<uint32_t>(ins.size()), outs.data(),
                                        static_cast<uint32_t>(outs.size()), trampoline, &state, &error);
    if (rc == KEEL_OK) return take_arrays(outs);
    Error failure = Error::take(rc, error);
    if (state.thrown) std::rethrow_exception(state.thrown);
    if (rc == KEEL_CANCELLED && state.stopped) return {};
    throw failure;
  }

  /// JSON: launches, constants, memory in bytes. `in` (may be empty) supplies the sizes of symbolic dims.
  std::string report(std::span<const Array> in = {}) const {
    std::vector<keel_array*> ins = raw(in);
    keel_text* text = nullptr;
    call(keel_plan_report, get(), ins.empty() ? nullptr : ins.data(), static_cast<uint32_t>(ins.size()),
         &text);
    return take_text(text);
  }

 private:
  Handle<keel_plan, keel_plan_free> handle_;
};

class Feeds;  // graph.hpp

/// A module's graph on one device. Any thread may use it; the module may be freed first.
class Session {
 public:
  /// graph.hpp: for a graph written as C++ code ("": on the device of the graph), or the default graph.
  explicit Session(const Graph& graph, const std::string& device = "", const Options& options = {});
  Session();
  /// Options: "threads", "memory", "entry", "graph", "observe", "profile" (see keel.h).
  Session(const Module& module, const std::string& device, const Options& options = {}) {
    std::vector<keel_kv> kv = options.view();
    keel_session* out = nullptr;
    call(keel_session_new, module.get(), device.c_str(), kv.data(), static_cast<uint32_t>(kv.size()), &out);
    handle_.reset(out);
  }
  keel_session* get() const { return handle_.get(); }

  /// The values of the fetches: tensors, names and structures of them; a Node is run and yields keel::None.
  /// Runs the part of the graph that they depend on.
  template <class Fetch>
  auto run(const Fetch& fetch, const Feeds& feeds, const std::vector<std::string>& targets = {}) const;
  template <class Fetch>
  auto run(const Fetch& fetch) const;

  /// Empty feeds or fetches mean the parameters or results of the entry; targets are nodes run for their
  /// effects.
  Plan prepare(std::span<const std::string> feeds = {}, std::span<const std::string> fetches = {},
               std::span<const std::string> targets = {}) const {
    std::vector<const char*> f = c_strings(feeds), r = c_strings(fetches), t = c_strings(targets);
    keel_plan* out = nullptr;
    call(keel_plan_new, get(), f.empty() ? nullptr : f.data(), static_cast<uint32_t>(f.size()),
         r.empty() ? nullptr : r.data(), static_cast<uint32_t>(r.size()), t.empty() ? nullptr : t.data(),
         static_cast<uint32_t>(t.size()), &out);
    return Plan(out);
  }

 private:
  static std::vector<const char*> c_strings(std::span<const std::string> strings) {
    std::vector<const char*> out;
    for (const std::string& s : strings) out.push_back(s.c_str());
    return out;
  }
  Handle<keel_session, keel_session_free> handle_;
  std::shared_ptr<detail::OpenGraph> graph_;  // of tensors used as fetches and feeds
};

}  // namespace keel
#endif
