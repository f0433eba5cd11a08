// error.hpp: failures of the C API as one exception type, and owning handles.
//
// How to read it: Error carries what keel_error_* tell; call() runs a C function and throws on failure;
// Handle frees what a C function handed out.
#ifndef KEEL_ERROR_HPP
#define KEEL_ERROR_HPP
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "keel.h"

namespace keel {

/// A failed call: what() is the message; the rest is "" where it does not apply.
class Error : public std::runtime_error {
 public:
  explicit Error(keel_rc code, const std::string& message, std::string hint = "")
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  /// Copies the facts out of a C error object and frees it.
  static Error take(keel_rc code, keel_error* e) {
    if (!e) return Error(code, "the call failed without a message");
    Error error(code, keel_error_message(e), keel_error_hint(e));
    error.op_ = keel_error_op(e);
    error.node_ = keel_error_node(e);
    error.plugin_ = keel_error_plugin(e);
    keel_error_free(e);
    return error;
  }

  keel_rc code() const { return code_; }
  const std::string& op() const { return op_; }
  const std::string& node() const { return node_; }
  const std::string& plugin() const { return plugin_; }
  const std::string& hint() const { return hint_; }

 private:
  keel_rc code_;
  std::string op_, node_, plugin_, hint_;
};

/// Calls a C function whose last argument is `keel_error** err`; throws Error where it fails.
template <class F, class... Args>
void call(F function, Args... args) {
  keel_error* error = nullptr;
  if (keel_rc rc = function(args..., &error); rc != KEEL_OK) throw Error::take(rc, error);
}

template <auto free_function>
struct Free {
  template <class T>
  void operator()(T* p) const {
    free_function(p);
  }
};
/// A move-only owner of one C object.
template <class T, auto free_function>
using Handle = std::unique_ptr<T, Free<free_function>>;

/// Takes a keel_text over as a string.
inline std::string take_text(keel_text* text) {
  Handle<keel_text, keel_text_free> owner(text);
  return std::string(keel_text_data(text), keel_text_size(text));
}

}  // namespace keel
#endif
