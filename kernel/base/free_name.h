// free_name.h: names that nothing has yet.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

namespace keel {

// The stem itself where it is free, else with 1, 2 ... behind it. taken(name): whether something has it. Of
// many names with numbers few are asked for: after one that is taken, the next that is free is near.
inline std::string FreeName(std::string_view stem, absl::FunctionRef<bool(const std::string&)> taken,
                            std::string_view between = "_") {
  std::string name(stem);
  if (!taken(name)) return name;
  auto numbered = [&](uint64_t i) { return absl::StrCat(stem, between, i); };
  uint64_t low = 0, high = 1;
  for (; taken(numbered(high)); high *= 2) low = high;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    (taken(numbered(middle)) ? low : high) = middle;
  }
  return numbered(high);
}

}  // namespace keel
