// context.hpp: the context, the root of everything: its plugins, devices and reports.
#ifndef KEEL_CONTEXT_HPP
#define KEEL_CONTEXT_HPP
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"
#include "home.hpp"

namespace keel {

/// Named options for contexts, imports and sessions: {{"threads", "2"}, {"memory", "1000000"}}.
class Options {
 public:
  Options() = default;
  Options(std::initializer_list<std::pair<std::string, std::string>> pairs) : pairs_(pairs) {}
  Options& set(std::string key, std::string value) {
    pairs_.emplace_back(std::move(key), std::move(value));
    return *this;
  }
  /// Borrowed views; valid until this changes.
  std::vector<keel_kv> view() const {
    std::vector<keel_kv> out;
    for (const auto& [key, value] : pairs_) out.push_back({key.c_str(), value.c_str()});
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

/// Contexts are independent of each other. Options: "threads", "memory", "plugins" (see keel.h).
class Context {
 public:
  explicit Context(const Options& options = {}) {
    std::vector<keel_kv> kv = options.view();
    keel_context* out = nullptr;
    call(keel_open, kv.data(), static_cast<uint32_t>(kv.size()), &out);
    handle_.reset(out);
  }
  keel_context* get() const { return handle_.get(); }

  /// Takes every usable plugin in the standard folders; report("plugins") tells what became of each.
  void scan_plugins() { call(keel_plugin_scan, get()); }
  void load_plugin(const std::string& path) { call(keel_plugin_load, get(), path.c_str()); }
  void add_plugin(const keel_plugin* plugin) { call(keel_plugin_add, get(), plugin); }

  /// Stops every run of this context, also later ones, until cancel(false). Any thread; async-signal-safe.
  void cancel(bool on = true) const { keel_cancel(get(), on); }

  /// Where `print` goes; as keel_print_hook, with NULL: stderr.
  void print_to(keel_print_fn hook, void* arg) const { keel_print_hook(get(), hook, arg); }

  std::vector<std::string> devices() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < keel_device_count(get()); i++) {
      const char* name = nullptr;
      call(keel_device_name, get(), i, &name);
      names.emplace_back(name);
    }
    return names;
  }

  /// Where tensors of this context are computed on a device; for keel::Scope.
  detail::Home& home(const std::string& device) const { return homes_->at(get(), device); }

  /// Facts as JSON; `what` as in keel_report.
  std::string report(const std::string& what) const {
    keel_text* text = nullptr;
    call(keel_report, get(), what.c_str(), &text);
    return take_text(text);
  }

 private:
  Handle<keel_context, keel_close> handle_;
  std::unique_ptr<detail::Homes> homes_ = std::make_unique<detail::Homes>();  // freed before the context
};

}  // namespace keel
#endif
