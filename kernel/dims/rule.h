// rule.h: what must hold of the symbols of a graph, as text: "b in 2..65536", "n in 2..", "b % 8 == 0",
// "n <= 512", "n < m + 1". A plan checks it when sizes are known.
#pragma once

#include <string_view>
#include <vector>

#include "kernel/dims/dim.h"

namespace keel {

struct DimRule {
  Dim a, b;
  bool equal;  // else a <= b
};

// A range is two of them. Symbols that the table does not have are an error, and are in it then: who cannot
// have that passes a copy.
absl::StatusOr<std::vector<DimRule>> ParseRule(std::string_view text, DimTable& dims);

}  // namespace keel
