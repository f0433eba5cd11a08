// sizes.h: which sizes of a function's array arguments become symbols, and what a program asks of symbols.
//
// A size is a literal until the third distinct one (`after` = 2) was seen in its place; then that dim is any
// size from 2 on. 0 and 1 stay literal, so that broadcasting is decided. Dims that were equal in every call
// share a symbol. A dim that the program needs as a number stays one: its place in the ledger says so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/dims/rule.h"

namespace keel {

// One number for each dim of all array arguments: a size, or -1 - the number of a symbol.
struct SizePattern {
  std::vector<int64_t> dims;
  uint32_t symbols = 0;

  // The number of each symbol; nullopt: these sizes do not fit.
  std::optional<std::vector<int64_t>> Fit(std::span<const int64_t> sizes) const;
};

class SizeLedger {
 public:
  void Remember(std::span<const int64_t> sizes);
  // For a new trace that the sizes remembered last ask for.
  SizePattern Next(uint32_t after) const;
  // The dims of these symbols of the pattern stay numbers from now on; no symbols: all of them.
  void Keep(const SizePattern& pattern, std::span<const size_t> symbols);

 private:
  static constexpr size_t kMost = 16;  // calls remembered
  bool AlwaysEqual(size_t a, size_t b) const;
  std::vector<std::vector<int64_t>> seen_;
  std::vector<bool> kept_;  // by dim
};

// What a program that is traced for one call asks of sizes that are symbols. The answers are those of this
// call, and the trace serves the calls with the same answers.
struct SizesAsked {
  std::function<absl::StatusOr<std::vector<int64_t>>()> of_call;  // by symbol; null: the call is over
  std::vector<DimRule> guards;                                    // they hold for this call
  std::vector<size_t> numbers;  // symbols of which the program took the number
  std::string number;           // the first one, as an expression
};

}  // namespace keel
