// scope.hpp: which context and device the ops of this thread run on.
//
//   keel::Tensor y = a + b;                    // the default context (made at first use, with all plugins
//                                              // found) and its default device: cpu, else the first
//   keel::Scope on = keel::device("reference");  // until the end of the block, this thread
//   keel::Scope mine(context, "cpu");          // another context, which must outlive the scope
#ifndef KEEL_SCOPE_HPP
#define KEEL_SCOPE_HPP
#include <algorithm>

#include "context.hpp"

namespace keel {

/// Made at first use and never closed, so that tensors in static variables stay usable.
inline const Context& default_context() {
  static const Context& context = *[] {
    auto made = std::make_unique<Context>();
    made->scan_plugins();
    return made.release();
  }();
  return context;
}

/// "cpu" where there is one, else the first device.
inline std::string default_device(const Context& context) {
  std::vector<std::string> all = context.devices();
  if (all.empty())
    throw Error(KEEL_UNAVAILABLE, "the context has no device",
                "scan_plugins() or load_plugin() first; report(\"plugins\") says what was refused");
  auto cpu = std::find_if(all.begin(), all.end(), [](const std::string& d) { return d.starts_with("cpu"); });
  return cpu == all.end() ? all[0] : "cpu";
}

namespace detail {
inline Home& default_home() {
  static Home& home = default_context().home(default_device(default_context()));
  return home;
}
inline Home& here() { return this_home ? *this_home : default_home(); }
}  // namespace detail

/// For as long as it lives, ops of this thread run there. Scopes end in the opposite order, on their thread.
class [[nodiscard]] Scope {
 public:
  Scope(const Context& context, const std::string& device) : Scope(context.home(device)) {}
  explicit Scope(detail::Home& home) : before_(std::exchange(detail::this_home, &home)) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { detail::this_home = before_; }

 private:
  detail::Home* before_;
};

/// A device of the context in use: "cpu", "cuda:1". An unknown one is an error here.
inline Scope device(const std::string& name) {
  detail::Home& now = detail::here();
  Handle<keel_op, keel_op_free> there(detail::Attributes().bind(
      now.context(), name.c_str(), "identity"));  // names the devices that there are
  return Scope(now.family().at(now.context(), name));
}

}  // namespace keel
#endif
