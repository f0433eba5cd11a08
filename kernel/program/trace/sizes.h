// sizes.h: the choice of argument sizes that become symbols, and the queries of a program on symbolic sizes.
//
// A dim is literal until its third distinct size (`after` = 2); then it is a symbol for any size of at
// least 2. 0 and 1 stay literal, because broadcasting depends on them. Dims that were equal in every call
// share a symbol. A dim that the program needs as a number stays literal; the ledger records it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/language/dims/rule.h"

namespace keel {

// For each dim of all array arguments: a size, or -1 - (index of a symbol).
struct SizePattern {
  std::vector<int64_t> dims;
  uint32_t symbols = 0;

  // The value of each symbol; nullopt if the sizes do not match.
  std::optional<std::vector<int64_t>> Fit(std::span<const int64_t> sizes) const;
};

class SizeLedger {
 public:
  void Remember(std::span<const int64_t> sizes);
  // The pattern for a new trace that serves the sizes remembered last.
  SizePattern Next(uint32_t after) const;
  // Dims of these symbols of the pattern stay literal from now on; an empty list means all symbols.
  void KeepLiteral(const SizePattern& pattern, std::span<const size_t> symbols);

 private:
  static constexpr size_t kMaxCalls = 16;  // calls remembered
  bool AlwaysEqual(size_t a, size_t b) const;
  std::vector<std::vector<int64_t>> seen_;
  std::vector<bool> literal_;  // by dim
};

// The queries of a program on its symbolic sizes. The call being traced determines the answers, and the trace
// serves only calls with the same answers.
struct SizeQueries {
  std::function<absl::StatusOr<std::vector<int64_t>>()> call_sizes;  // by symbol; null after the call
  std::vector<DimRule> guards;                                       // hold for this call
  std::vector<size_t> numbers;                                       // symbols whose value the program read
  std::string number;  // expression of the first size read as a number
};

}  // namespace keel
