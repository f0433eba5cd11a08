// status.cc: error details, stored as payloads of absl::Status.

#include "kernel/base/status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace keel {

void MessagePiece::AppendTo(std::string* out) const {
  if (kind_ == kText && number_ == kNulTerminated)
    *out += text_ ? text_ : "";
  else if (kind_ == kText)
    out->append(text_, number_);
  else if (kind_ == kSigned)
    *out += std::to_string(static_cast<int64_t>(number_));
  else
    *out += std::to_string(number_);
}

std::string Joined(std::initializer_list<MessagePiece> parts) {
  std::string message;
  for (const MessagePiece& part : parts) part.AppendTo(&message);
  return message;
}

absl::Status JoinedError(absl::StatusCode code, std::initializer_list<MessagePiece> parts) {
  return absl::Status(code, Joined(parts));
}

absl::Status Annotate(absl::Status status, std::string_view fact, std::string_view value) {
  absl::string_view url(fact.data(), fact.size());
  if (!status.ok() && !value.empty() && !status.GetPayload(url).has_value())
    status.SetPayload(url, absl::Cord(absl::string_view(value.data(), value.size())));
  return status;
}

std::string ErrorFact(const absl::Status& status, std::string_view fact) {
  auto payload = status.GetPayload(absl::string_view(fact.data(), fact.size()));
  return payload ? std::string(*payload) : std::string();
}

absl::Status Reword(const absl::Status& status, std::string_view message) {
  absl::Status out(status.code(), message);
  status.ForEachPayload([&](std::string_view url, const absl::Cord& value) { out.SetPayload(url, value); });
  return out;
}

absl::Status FileError(int error, std::string_view doing) {
  constexpr int kMissingCodes[] = {ENOENT, ENOTDIR},
                kExhaustedCodes[] = {ENOMEM, ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE};
  auto in = [&](auto& list) { return std::find(std::begin(list), std::end(list), error) != std::end(list); };
  auto code = in(kMissingCodes)     ? absl::StatusCode::kNotFound
              : in(kExhaustedCodes) ? absl::StatusCode::kResourceExhausted
                                    : absl::StatusCode::kFailedPrecondition;
  return Error(code, std::string(doing), ": ", std::strerror(error));
}

}  // namespace keel
