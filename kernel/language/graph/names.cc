#include "kernel/language/graph/names.h"

#include <charconv>

#include "kernel/base/json.h"
#include "kernel/language/graph/limits.h"

namespace keel {
bool WholeNumber(std::string_view s, uint32_t* out) {
  if (s.empty() || (s.size() > 1 && s[0] == '0') || s[0] == '-') return false;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *out);
  return error == std::errc() && end == s.data() + s.size();
}

bool IsUtf8(std::string_view s) {
  while (!s.empty()) {
    size_t n = Utf8Length(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

absl::Status CheckName(std::string_view what, std::string_view name) {
  if (name.empty()) return Invalid(what, " needs a name, got an empty one");
  if (name.size() > kMaxNameBytes)
    return Invalid("the name of ", what, " has ", name.size(), " bytes; the limit is ", kMaxNameBytes);
  for (char c : name)
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f)
      return Invalid("the name of ", what, " contains the control byte ", static_cast<int>(c));
  if (!IsUtf8(name)) return Invalid("the name of ", what, " is not UTF-8");
  return absl::OkStatus();
}

std::string ResultName(uint32_t node, uint32_t result) {
  return result == 0 ? absl::StrCat("v", node) : absl::StrCat("v", node, "_", result);
}

std::optional<std::pair<uint32_t, uint32_t>> SplitResultName(std::string_view name) {
  if (name.size() < 2 || name[0] != 'v') return std::nullopt;
  name.remove_prefix(1);
  std::pair<uint32_t, uint32_t> out{0, 0};
  size_t bar = name.find('_');
  if (!WholeNumber(name.substr(0, bar), &out.first)) return std::nullopt;
  if (bar == std::string_view::npos) return out;
  if (!WholeNumber(name.substr(bar + 1), &out.second) || out.second == 0) return std::nullopt;
  return out;
}

}  // namespace keel
