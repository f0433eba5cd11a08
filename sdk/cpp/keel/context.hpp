// context.hpp: the context, which owns the plugins, devices and reports.
#ifndef KEEL_CONTEXT_HPP
#define KEEL_CONTEXT_HPP
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"
#include "home.hpp"

namespace keel {

/// Options of contexts, imports and sessions: {{"threads", "2"}, {"memory", "1000000"}}.
class Options {
 public:
  Options() = default;
  Options(std::initializer_list<std::pair<std::string, std::string>> pairs) : pairs_(pairs) {}
  Options& set(std::string key, std::string value) {
    pairs_.emplace_back(std::move(key), std::move(value));
    return *this;
  }
  /// Borrowed views, valid until the options change.
  std::vector<keel_kv> view() const {
    std::vector<keel_kv> out;
    for (const auto& [key, value] : pairs_) out.push_back({key.c_str(), value.c_str()});
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

/// Independent of other contexts; C objects made in it keep it alive. Options: "threads", "memory", "plugins"
/// (see keel.h). Any thread may use it.
class Context {
 public:
  explicit Context(const Options& options = {}) {
    std::vector<keel_kv> kv = options.view();
    keel_context* out = nullptr;
    call(keel_context_new, kv.data(), static_cast<uint32_t>(kv.size()), &out);
    handle_.reset(out);
  }
  keel_context* get() const { return handle_.get(); }

  /// Loads every usable plugin of the standard folders; report("plugins") lists each with its state.
  void scan_plugins() { call(keel_plugin_load, get(), nullptr); }
  /// Loads one plugin file; Error if it is refused.
  void load_plugin(const std::string& path) { call(keel_plugin_load, get(), path.c_str()); }
  /// Registers a plugin linked into the program; `plugin` is borrowed and should be static.
  void add_plugin(const keel_plugin* plugin) { call(keel_plugin_add, get(), plugin); }

  /// Stops all runs of this context, present and future, until cancel(false). Any thread; async-signal-safe.
  void cancel(bool on = true) const { keel_context_cancel(get(), on); }

  /// The destination of `print`; as keel_print_hook. NULL: stderr.
  void print_to(keel_print_fn hook, void* arg) const { keel_print_hook(get(), hook, arg); }

  /// Names of the devices: "cpu", "cuda:1".
  std::vector<std::string> devices() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; const char* name = keel_device_name(get(), i); i++) names.emplace_back(name);
    return names;
  }

  /// The bound ops of a device, for keel::Scope. Borrowed from the context.
  detail::Home& home(const std::string& device) const { return homes_->at(get(), device); }

  /// JSON; `what` as in keel_context_report.
  std::string report(const std::string& what) const {
    keel_text* text = nullptr;
    call(keel_context_report, get(), what.c_str(), &text);
    return take_text(text);
  }

 private:
  Handle<keel_context, keel_context_free> handle_;
  std::unique_ptr<detail::Homes> homes_ = std::make_unique<detail::Homes>();  // freed before the context
};

}  // namespace keel
#endif
