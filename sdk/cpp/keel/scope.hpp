// scope.hpp: the context and device of this thread's ops.
//
//   keel::Tensor y = a + b;                    // the default context (created at first use, with all
//                                              // plugins) and its default device: cpu, else the first
//   keel::Scope on = keel::device("reference");  // until the end of the block, for this thread
//   keel::Scope mine(context, "cpu");          // another context, which must outlive the scope
#ifndef KEEL_SCOPE_HPP
#define KEEL_SCOPE_HPP
#include "context.hpp"

namespace keel {

/// Created at first use and never freed, so that tensors in static variables stay valid. Thread-safe.
inline const Context& default_context() {
  static const Context& context = *[] {
    auto made = std::make_unique<Context>();
    made->scan_plugins();
    return made.release();
  }();
  return context;
}

/// "cpu" if there is one, else the first device; Error KEEL_UNAVAILABLE if there is none.
inline std::string default_device(const Context& context) {
  const char* first = keel_device_name(context.get(), 0);
  if (!first)
    throw Error(KEEL_UNAVAILABLE, "the context has no device",
                "scan_plugins() or load_plugin() first; report(\"plugins\") lists the refused plugins");
  for (uint32_t i = 0; const char* name = keel_device_name(context.get(), i);
       i++)  // later ones may load a driver
    if (std::string_view(name).starts_with("cpu")) return "cpu";
  return first;
}

namespace detail {
inline Home& default_home() {
  static Home& home = default_context().home(default_device(default_context()));
  return home;
}
inline Home& here() { return this_home ? *this_home : default_home(); }
}  // namespace detail

/// Ops of this thread run on that device until the end of the scope. Scopes must end in reverse order, on
/// their thread; the context must outlive them.
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

/// A device of the current context: "cpu", "cuda:1". Error KEEL_NOT_FOUND for an unknown device.
inline Scope device(const std::string& name) {
  detail::Home& now = detail::here();
  Handle<keel_op, keel_op_free> there(
      detail::Attributes().bind(now.context(), name.c_str(), "identity"));  // its error lists the devices
  return Scope(now.family().at(now.context(), name));
}

}  // namespace keel
#endif
