// status.h: how the kernel reports failure. Read this before any other kernel file.
//
// Errors are absl::Status with the codes of keel_rc (they are the same numbers). What the C ABI shows
// apart from the message (op, node, plugin, hint) travels as payloads; see Annotate.
#pragma once

#include <string>
#include <string_view>

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

template <typename... Parts>
absl::Status Error(absl::StatusCode code, const Parts&... parts) {
  return absl::Status(code, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return Error(absl::StatusCode::kInvalidArgument, parts...);
}
template <typename... Parts>
absl::Status NotFound(const Parts&... parts) {
  return Error(absl::StatusCode::kNotFound, parts...);
}
template <typename... Parts>
absl::Status Exhausted(const Parts&... parts) {
  return Error(absl::StatusCode::kResourceExhausted, parts...);
}
template <typename... Parts>
absl::Status Unimplemented(const Parts&... parts) {
  return Error(absl::StatusCode::kUnimplemented, parts...);
}
template <typename... Parts>
absl::Status Internal(const Parts&... parts) {
  return Error(absl::StatusCode::kInternal, parts...);
}

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
