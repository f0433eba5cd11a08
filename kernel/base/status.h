// status.h: how the kernel reports failure. Read this before any other kernel file.
//
// Errors are absl::Status with the codes of keel_rc (they are the same numbers). What the C ABI shows
// apart from the message (op, node, plugin, hint) travels as payloads; see Annotate.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace keel {

// Which fact about an error; also the payload's type URL.
inline constexpr std::string_view kErrorOp = "op";
inline constexpr std::string_view kErrorNode = "node";
inline constexpr std::string_view kErrorPlugin = "plugin";
inline constexpr std::string_view kErrorHint = "hint";

// Adds a fact unless it is there already (the innermost speaker knows best).
absl::Status Annotate(absl::Status status, std::string_view fact, std::string_view value);
std::string ErrorFact(const absl::Status& status, std::string_view fact);

// The same error with its facts, in other words.
absl::Status Reword(const absl::Status& status, std::string_view message);

// A part of a message on its way: of few types, so that few functions join them.
template <typename T>
using PartOf =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_same_v<T, std::string>, const std::string&,
                                          std::conditional_t<std::is_same_v<T, std::string_view>,
                                                             std::string_view, const char*>>>;
class Part {
 public:
  Part(const char* text) : text_(text), number_(kToItsEnd) {}
  Part(std::string_view text) : text_(text.data()), number_(text.size()) {}
  Part(const std::string& text) : Part(std::string_view(text)) {}
  Part(int64_t number) : number_(static_cast<uint64_t>(number)), kind_(kSigned) {}
  Part(uint64_t number) : number_(number), kind_(kUnsigned) {}
  void AppendTo(std::string* out) const;

 private:
  static constexpr uint64_t kToItsEnd = ~uint64_t{0};
  enum Kind : uint8_t { kText, kSigned, kUnsigned };
  const char* text_ = nullptr;
  uint64_t number_;  // or the text's length
  Kind kind_ = kText;
};
absl::Status ErrorOf(absl::StatusCode code, std::initializer_list<Part> parts);
template <typename... Passed>
absl::Status ErrorFrom(absl::StatusCode code, Passed... parts) {
  return ErrorOf(code, {Part(parts)...});
}

#define KEEL_SHORT [[gnu::always_inline]] inline
template <typename... Parts>
KEEL_SHORT absl::Status Error(absl::StatusCode code, const Parts&... parts) {
  return ErrorFrom<PartOf<Parts>...>(code, parts...);
}
template <typename... Parts>
KEEL_SHORT absl::Status Invalid(const Parts&... parts) {
  return Error(absl::StatusCode::kInvalidArgument, parts...);
}
template <typename... Parts>
KEEL_SHORT absl::Status NotFound(const Parts&... parts) {
  return Error(absl::StatusCode::kNotFound, parts...);
}
template <typename... Parts>
KEEL_SHORT absl::Status Exhausted(const Parts&... parts) {
  return Error(absl::StatusCode::kResourceExhausted, parts...);
}
template <typename... Parts>
KEEL_SHORT absl::Status Unimplemented(const Parts&... parts) {
  return Error(absl::StatusCode::kUnimplemented, parts...);
}
template <typename... Parts>
KEEL_SHORT absl::Status Internal(const Parts&... parts) {
  return Error(absl::StatusCode::kInternal, parts...);
}
#undef KEEL_SHORT

// Of a failed file operation, by its errno: "doing: why".
absl::Status FileError(int error, std::string_view doing);

#define KEEL_CONCAT_INNER(a, b) a##b
#define KEEL_CONCAT(a, b) KEEL_CONCAT_INNER(a, b)
#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (0)
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL(KEEL_CONCAT(result_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                          \
  if (!result.ok()) return result.status();      \
  lhs = std::move(result).value()

}  // namespace keel
