// free_name.h: the first unused name of the form stem, stem_1, stem_2, ...
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

namespace keel {

// taken(name) reports whether a name is in use. Doubling, then binary search, finds a free number in O(log n)
// calls; gaps below a taken number may be missed.
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
