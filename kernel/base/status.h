// status.h: how the kernel reports failure. Read this before any other kernel file.
//
// Errors are absl::Status; its codes equal the codes of keel_rc. The details that the C ABI reports apart
// from the message (op, node, plugin, hint) are payloads; see Annotate.
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

// Kinds of detail; also the payload's type URL.
inline constexpr std::string_view kErrorOp = "op";
inline constexpr std::string_view kErrorNode = "node";
inline constexpr std::string_view kErrorPlugin = "plugin";
inline constexpr std::string_view kErrorHint = "hint";

// Adds a detail unless it is already set: the innermost frame is the most specific.
absl::Status Annotate(absl::Status status, std::string_view fact, std::string_view value);
std::string ErrorFact(const absl::Status& status, std::string_view fact);

// The same code and details with another message.
absl::Status Reword(const absl::Status& status, std::string_view message);

// One piece of a message. Arguments are converted to five types, so that few instances of the templates below
// exist.
template <typename T>
using PieceArgument =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_same_v<T, std::string>, const std::string&,
                                          std::conditional_t<std::is_same_v<T, std::string_view>,
                                                             std::string_view, const char*>>>;
class MessagePiece {
 public:
  MessagePiece(const char* text) : text_(text), number_(kNulTerminated) {}
  MessagePiece(std::string_view text) : text_(text.data()), number_(text.size()) {}
  MessagePiece(const std::string& text) : MessagePiece(std::string_view(text)) {}
  MessagePiece(int64_t number) : number_(static_cast<uint64_t>(number)), kind_(kSigned) {}
  MessagePiece(uint64_t number) : number_(number), kind_(kUnsigned) {}
  void AppendTo(std::string* out) const;

 private:
  static constexpr uint64_t kNulTerminated = ~uint64_t{0};
  enum Kind : uint8_t { kText, kSigned, kUnsigned };
  const char* text_ = nullptr;
  uint64_t number_;  // kText: the length of text
  Kind kind_ = kText;
};
std::string Joined(std::initializer_list<MessagePiece> parts);
absl::Status JoinedError(absl::StatusCode code, std::initializer_list<MessagePiece> parts);
template <typename... Passed>
absl::Status ErrorOfPieces(absl::StatusCode code, Passed... parts) {
  return JoinedError(code, {MessagePiece(parts)...});
}

#define KEEL_INLINE [[gnu::always_inline]] inline
template <typename... Parts>
KEEL_INLINE absl::Status Error(absl::StatusCode code, const Parts&... parts) {
  return ErrorOfPieces<PieceArgument<Parts>...>(code, parts...);
}
template <typename... Parts>
KEEL_INLINE absl::Status Invalid(const Parts&... parts) {
  return Error(absl::StatusCode::kInvalidArgument, parts...);
}
template <typename... Parts>
KEEL_INLINE absl::Status NotFound(const Parts&... parts) {
  return Error(absl::StatusCode::kNotFound, parts...);
}
template <typename... Parts>
KEEL_INLINE absl::Status Exhausted(const Parts&... parts) {
  return Error(absl::StatusCode::kResourceExhausted, parts...);
}
template <typename... Parts>
KEEL_INLINE absl::Status Unimplemented(const Parts&... parts) {
  return Error(absl::StatusCode::kUnimplemented, parts...);
}
template <typename... Parts>
KEEL_INLINE absl::Status Internal(const Parts&... parts) {
  return Error(absl::StatusCode::kInternal, parts...);
}
#undef KEEL_INLINE

// The error for an errno of a failed file operation: "doing: reason".
absl::Status FileError(int error, std::string_view doing);

#define KEEL_CONCAT_INNER(a, b) a##b
#define KEEL_CONCAT(a, b) KEEL_CONCAT_INNER(a, b)
// Hold results without code that destroys them: nothing remains of a good status, of one that moved out, or
// of a result after Take.
union HeldStatus {
  absl::Status status;
  ~HeldStatus() {}
};
template <typename T>
union HeldResult {
  absl::StatusOr<T> result;
  ~HeldResult() {}
  T Take() {
    T value = *std::move(result);
    result.~StatusOr();
    return value;
  }
};
template <typename T>
HeldResult(absl::StatusOr<T>) -> HeldResult<T>;

#define RETURN_IF_ERROR(expr)                               \
  do {                                                      \
    keel::HeldStatus held_{(expr)};                         \
    if (!held_.status.ok()) return std::move(held_.status); \
  } while (0)
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL(KEEL_CONCAT(held_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(held, lhs, expr)                   \
  keel::HeldResult held{(expr)};                                 \
  if (!held.result.ok()) return std::move(held.result).status(); \
  lhs = held.Take()

}  // namespace keel
