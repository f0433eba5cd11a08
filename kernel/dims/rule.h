// rule.h: what must hold of the symbols of a graph, as text: "b in 2..65536", "n in 2..", "b % 8 == 0",
// "n <= 512", "n < m + 1". A plan checks it when sizes are known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/dims/dim.h"

namespace keel {

struct DimRule {
  Dim a, b;
  bool equal;  // else a <= b
};

// A range is two of them. Symbols that the table does not have are an error.
absl::StatusOr<std::vector<DimRule>> ParseRule(std::string_view text, DimTable& dims);

// "2*n <= 8", as ParseRule reads it.
std::string PrintRule(const DimRule& rule, const DimTable& dims);
// Whether it holds for all sizes or for none; nullopt: that depends on them.
std::optional<bool> Decided(const DimRule& rule, const DimTable& dims);
// Whether it holds for these.
absl::StatusOr<bool> Holds(const DimRule& rule, const DimTable& dims, std::span<const int64_t> symbols);

}  // namespace keel
