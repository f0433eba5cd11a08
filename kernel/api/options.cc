#include "kernel/api/options.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace keel {
namespace {

absl::Status Unexpected(const char* name, const std::string& value, std::string_view expected) {
  return Invalid("option \"", name, "\": got \"", value, "\", expected ", expected);
}

absl::Status ParseNumber(const char* name, const std::string& value, uint64_t min, uint64_t max,
                         uint64_t* to) {
  const char* end = value.data() + value.size();
  auto [stop, error] = std::from_chars(value.data(), end, *to);
  if (error == std::errc() && stop == end && *to >= min && *to <= max) return absl::OkStatus();
  return Unexpected(name, value, absl::StrCat("a number from ", min, " to ", max));
}

}  // namespace

Option Option::Text(const char* name, std::string* to) {
  return {name, [to](const std::string& value) {
            *to = value;
            return absl::OkStatus();
          }};
}

Option Option::Number(const char* name, uint64_t* to, uint64_t min, uint64_t max) {
  return {name, [=](const std::string& value) { return ParseNumber(name, value, min, max, to); }};
}

Option Option::Number(const char* name, uint32_t* to, uint64_t min, uint64_t max) {
  return {name, [=](const std::string& value) -> absl::Status {
            uint64_t n = 0;
            RETURN_IF_ERROR(ParseNumber(name, value, min, max, &n));
            *to = static_cast<uint32_t>(n);
            return absl::OkStatus();
          }};
}

Option Option::Byte(const char* name, unsigned char* to, const char* words) {
  return {name, [=](const std::string& value) -> absl::Status {
            std::vector<std::string> all = absl::StrSplit(words, absl::ByAnyChar(", "), absl::SkipEmpty());
            std::erase(all, "or");
            auto found = std::ranges::find(all, value);
            if (found == all.end()) return Unexpected(name, value, words);
            *to = static_cast<unsigned char>(found - all.begin());
            return absl::OkStatus();
          }};
}

Option Option::Level(PassChoice* to) {
  return {"level", [to](const std::string& value) -> absl::Status {
            uint64_t level = 0;
            RETURN_IF_ERROR(ParseNumber("level", value, 0, 3, &level));
            to->level = static_cast<int32_t>(level);
            to->level_given = true;
            return absl::OkStatus();
          }};
}

Option Option::Passes(PassChoice* to) {
  return {"passes", [to](const std::string& value) { return ParsePasses(value, to); }};
}

absl::Status SetOptions(std::initializer_list<Option> known, const keel_kv* given, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (!given[i].key || !given[i].value)
      return Invalid("options[", i, given[i].key ? "].value is NULL" : "].key is NULL");
    auto option = std::ranges::find(known, given[i].key, &Option::name);
    if (option == known.end())
      return Invalid("option \"", given[i].key, "\" is unknown; the options are ",
                     absl::StrJoin(known, ", ", [](std::string* out, const Option& o) { *out += o.name; }));
    for (uint32_t k = 0; k < i && !option->repeats; k++)
      if (option->name == given[k].key)
        return Invalid("option \"", given[i].key, "\" is given twice: \"", given[k].value, "\" and \"",
                       given[i].value, "\"");
    RETURN_IF_ERROR(option->set(given[i].value));
  }
  return absl::OkStatus();
}

}  // namespace keel
