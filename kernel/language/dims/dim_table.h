// dim_table.h: the expressions of symbolic dims. A module has one table.
//
// Expressions are polynomials with integer coefficients over atoms (symbols, a // b, max, min), kept in
// canonical form and hash-consed: equal expressions have equal handles. Symbols range over 0 to kMaxDim,
// which bounds each dim of a real tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/base/status.h"
#include "kernel/language/dims/dim.h"

namespace keel {

namespace dims {
struct Expressions;
}

enum class Order : int { kLess = -1, kEqual = 0, kGreater = 1, kUnknown = 2 };

// Append-only. Const functions (Evaluate, Print, Compare) are thread-safe with each other, but not with calls
// that add expressions.
class DimTable {
 public:
  DimTable();
  ~DimTable();
  explicit DimTable(const DimTable&);  // handles keep their meaning in the copy
  DimTable& operator=(const DimTable&) = delete;
  void CopyFrom(const DimTable&);  // handles of `other` are valid here afterwards

  // The symbol with this name, created if it is new. Names: a letter or '_', then letters, digits, '_'.
  absl::StatusOr<Dim> Symbol(std::string_view name);
  absl::StatusOr<Dim> NewSymbol();  // size0, size1 ...: the first that is new
  std::optional<Dim> FindSymbol(std::string_view name) const;
  size_t symbol_count() const;  // symbols are numbered from 0 in order of creation
  std::string_view symbol_name(size_t index) const;
  std::optional<size_t> symbol_index(Dim) const;  // if the dim is a bare symbol
  bool Contains(Dim) const;                       // a number, or a handle of this table

  // Errors: overflow of int64, division by zero. FloorDiv rounds down.
  absl::StatusOr<Dim> Add(Dim a, Dim b);
  absl::StatusOr<Dim> Sub(Dim a, Dim b);
  absl::StatusOr<Dim> Mul(Dim a, Dim b);
  absl::StatusOr<Dim> FloorDiv(Dim a, Dim b);
  absl::StatusOr<Dim> Max(Dim a, Dim b);
  absl::StatusOr<Dim> Min(Dim a, Dim b);

  // For all values of the symbols (each >= 0); kUnknown if it depends on them.
  Order Compare(Dim a, Dim b) const;
  bool NeverNegative(Dim) const;
  // a <= b for all values of the symbols. (Compare has no result for "less or equal".)
  bool AlwaysLessEqual(Dim a, Dim b) const;

  // The value, given one number per symbol. Errors: overflow, division by zero.
  absl::StatusOr<int64_t> Evaluate(Dim, std::span<const int64_t> symbols) const;
  // Appends the indices of the symbols in the dim.
  void Symbols(Dim, std::vector<size_t>* out) const;

  std::string Print(Dim) const;  // "2*b+1"; parses back to the same Dim
  // + - * // % max(a,b) min(a,b) ( ). Unknown names become symbols, or are errors if `known`.
  absl::StatusOr<Dim> Parse(std::string_view expression, bool known = false);

 private:
  std::unique_ptr<dims::Expressions> expressions_;
};

}  // namespace keel
