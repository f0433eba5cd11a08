// dim.h: dims that may be symbolic. A Dim is a plain int64: a number, or a handle (below
// KEEL_DIM_HANDLES) of an expression in the DimTable of its module. Numbers never touch a table.
//
// Expressions are polynomials with integer coefficients over atoms (symbols, a // b, max, min), kept in
// canonical form and hash-consed: equal expressions have equal handles. Every symbol ranges over
// 0 ... kMaxDim; kMaxDim bounds any dim of a real tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/keel_base.h"
#include "absl/container/inlined_vector.h"
#include "kernel/base/status.h"

namespace keel {

using Dim = keel_dim;
using Dims = absl::InlinedVector<Dim, 6>;
inline constexpr Dim kMaxDim = Dim{1} << 40;
inline constexpr bool IsSymbolic(Dim d) { return KEEL_DIM_IS_HANDLE(d); }

enum class Order : int { kLess = -1, kEqual = 0, kGreater = 1, kUnknown = 2 };

// Grows only. Not thread-safe while it grows; reading (Evaluate, Print, Compare of existing) is.
class DimTable {
 public:
  DimTable();
  ~DimTable();
  explicit DimTable(const DimTable&);  // a copy: what this one gave out means the same there
  DimTable& operator=(const DimTable&) = delete;
  void CopyFrom(const DimTable&);  // handles stay the same

  // The symbol of that name, made if new. Names: letter or '_', then letters, digits, '_'.
  absl::StatusOr<Dim> Symbol(std::string_view name);
  std::optional<Dim> FindSymbol(std::string_view name) const;
  size_t symbol_count() const;  // symbols are numbered 0 .. count-1 in order of making
  std::string_view symbol_name(size_t index) const;
  std::optional<size_t> symbol_index(Dim) const;  // if the dim is a bare symbol
  bool Knows(Dim) const;                          // a number, or a handle that this table gave out

  // Arithmetic; errors: overflow beyond int64, division by zero. // rounds down.
  absl::StatusOr<Dim> Add(Dim a, Dim b);
  absl::StatusOr<Dim> Sub(Dim a, Dim b);
  absl::StatusOr<Dim> Mul(Dim a, Dim b);
  absl::StatusOr<Dim> FloorDiv(Dim a, Dim b);
  absl::StatusOr<Dim> Max(Dim a, Dim b);
  absl::StatusOr<Dim> Min(Dim a, Dim b);

  // For all values of the symbols (each >= 0); kUnknown where it depends on them.
  Order Compare(Dim a, Dim b) const;
  bool NeverNegative(Dim) const;
  // Less-or-equal for sure / greater-or-equal for sure (Compare cannot say "<= but maybe equal").
  bool SurelyLessEqual(Dim a, Dim b) const;

  // The number, given one value per symbol. Errors: overflow, division by zero.
  absl::StatusOr<int64_t> Evaluate(Dim, std::span<const int64_t> symbols) const;
  // Appends the indices of the symbols that the dim mentions.
  void Symbols(Dim, std::vector<size_t>* out) const;

  std::string Print(Dim) const;  // "2*b+1"; parses back to the same Dim
  // + - * // % max(a,b) min(a,b) ( ); new names become symbols, or are errors if `known`.
  absl::StatusOr<Dim> Parse(std::string_view expression, bool known = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keel
