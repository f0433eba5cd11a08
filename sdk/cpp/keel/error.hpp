// error.hpp: failures of the C API as one exception type, and owning handles.
//
// How to read it: Error carries the fields of a keel_error; call() runs a C function and throws on failure;
// result() runs C++ code and returns a Result instead of throwing; Handle owns a C object.
#ifndef KEEL_ERROR_HPP
#define KEEL_ERROR_HPP
#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "keel/keel.h"

namespace keel {

/// The source position of a call, as a last parameter `const Place& where = Place::current()`. Replaces
/// std::source_location, which not all C++20 compilers have.
struct Place {
  const char* file = "";
  unsigned line = 0;
  static constexpr Place current(const char* f = __builtin_FILE(), unsigned l = __builtin_LINE()) {
    return {f, l};
  }
};

/// A failed call: what() is the message; fields that do not apply are "".
class Error : public std::runtime_error {
 public:
  explicit Error(keel_rc code, const std::string& message, std::string hint = "")
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  /// Copies the fields of a C error object and frees it.
  static Error take(keel_rc code, keel_error* e) {
    if (!e) return Error(code, "the call failed without a message");
    Error error(code, keel_error_text(e, KEEL_ERROR_MESSAGE), keel_error_text(e, KEEL_ERROR_HINT));
    error.op_ = keel_error_text(e, KEEL_ERROR_OP);
    error.node_ = keel_error_text(e, KEEL_ERROR_NODE);
    error.plugin_ = keel_error_text(e, KEEL_ERROR_PLUGIN);
    keel_error_free(e);
    return error;
  }

  /// The same failure with `doing: ` before the message (or before `message`) and the caller's place, if it
  /// has a line, after it.
  Error within(const std::string& doing, const Place& where, const std::string* message = nullptr) const {
    std::string_view file = where.file;
    file = file.substr(file.rfind('/') + 1);
    std::string place = " (" + std::string(file) + ":" + std::to_string(where.line) + ")";
    Error error(
        code_,
        (doing.empty() ? "" : doing + ": ") + (message ? *message : what()) + (where.line ? place : ""),
        hint_);
    error.op_ = op_;
    error.node_ = node_;
    error.plugin_ = plugin_;
    error.where_ = where;
    return error;
  }

  keel_rc code() const { return code_; }
  const std::string& op() const { return op_; }
  const std::string& node() const { return node_; }
  const std::string& plugin() const { return plugin_; }
  const std::string& hint() const { return hint_; }
  /// Line 0: the failure did not come from an op or function of this SDK.
  const Place& where() const { return where_; }

 private:
  keel_rc code_;
  std::string op_, node_, plugin_, hint_;
  Place where_;
};

/// The return type of result(): a value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  /// Throws the Error if there is no value.
  T& value() & { return ok() ? *value_ : throw *error_; }
  T value() && { return ok() ? *std::move(value_) : throw *error_; }
  T value_or(T other) && { return ok() ? *std::move(value_) : std::move(other); }
  /// Undefined if there is a value.
  const Error& error() const { return *error_; }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (error_) throw *error_;
  }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

/// Runs `body`; returns its result, or the keel::Error that it threw. Other exceptions pass.
///   keel::Result<keel::Tensor> y = keel::result([&] { return a + b; });
template <std::invocable F>
auto result(F&& body) -> Result<std::invoke_result_t<F>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      body();
      return {};
    } else {
      return body();
    }
  } catch (const Error& error) {
    return error;
  }
}

/// Calls a C function whose last parameter is `keel_error** err`; throws Error on failure.
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

/// Copies a keel_text to a string and frees it.
inline std::string take_text(keel_text* text) {
  Handle<keel_text, keel_text_free> owner(text);
  uint64_t size = 0;
  const char* data = keel_text_data(text, &size);
  return std::string(data, size);
}

}  // namespace keel
#endif
