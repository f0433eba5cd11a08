// status.cc: facts that travel with an error, as payloads of absl::Status.

#include "kernel/base/status.h"

namespace keel {

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

}  // namespace keel
