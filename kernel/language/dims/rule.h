// rule.h: constraints on the symbols of a graph, as text: "b in 2..65536", "n in 2..", "b % 8 == 0", "n <=
// 512", "n < m + 1". A plan checks them when the sizes are known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/language/dims/dim_table.h"

namespace keel {

struct DimRule {
  Dim a, b;
  bool equal;  // else a <= b
};

// A range yields two constraints. Unknown symbols are errors.
absl::StatusOr<std::vector<DimRule>> ParseRule(std::string_view text, DimTable& dims);

// "2*n <= 8", as ParseRule reads it.
std::string PrintRule(const DimRule& rule, const DimTable& dims);
// true or false if it holds for all sizes or for none; nullopt if it depends on them.
std::optional<bool> DecidedForAll(const DimRule& rule, const DimTable& dims);
// Whether it holds for these values of the symbols.
absl::StatusOr<bool> Holds(const DimRule& rule, const DimTable& dims, std::span<const int64_t> symbols);

}  // namespace keel
