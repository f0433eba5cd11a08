// expressions.h: the representation of the expressions in a DimTable. Private to kernel/language/dims.
//
// An expression is a sum of products of atoms (sum.h). An atom is a symbol or an operation outside
// polynomials (a // b, max, min) on two other dims. One map finds the handle of an existing sum.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/base/hash.h"
#include "kernel/base/status.h"
#include "kernel/language/dims/dim.h"
#include "kernel/language/dims/sum.h"

namespace keel::dims {

// A Sum with a handle. weight: number of atoms when written out; depth: their nesting.
struct Interned {
  Sum sum;
  Range range;
  uint32_t weight = 0, depth = 0;
};

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMax, kMin };

struct Atom {
  AtomKind kind = AtomKind::kSymbol;
  uint32_t symbol = 0;  // kSymbol: its number
  Dim a = 0, b = 0;     // other kinds: the operands
  Range range;
  uint32_t weight = 1, depth = 1;
};

// Limits for hostile input, as those of sum.h.
inline constexpr size_t kMaxSymbols = 1 << 16, kMaxSums = 1 << 22;
inline constexpr uint32_t kMaxWeight = 4096, kMaxDepth = 32;
inline constexpr size_t kMaxText = 1 << 16;

// All expressions of a table. Read dim_table.h first.
struct Expressions {
  std::deque<Interned> sums;
  std::vector<Atom> atoms;
  std::vector<std::string> names;          // of symbols
  std::vector<Dim> symbols;                // their handles
  HashMap<std::string, uint32_t> by_name;  // -> symbol number
  HashMap<absl::InlinedVector<int64_t, 16>, Dim> handles;
  HashMap<std::tuple<uint8_t, Dim, Dim>, AtomId> atom_ids;

  const Interned* Find(Dim d) const;  // null for numbers and for handles of other tables
  const Atom* AtomOf(Dim d) const;    // null: not one atom alone
  Sum SumOf(Dim d) const;
  Range RangeOf(Dim d) const;
  Range RangeOf(const Sum&) const;
  absl::Status Check(Dim d) const;
  absl::StatusOr<Dim> Intern(Sum sum);
  absl::StatusOr<Dim> InternAtom(AtomKind kind, Dim a, Dim b);
  absl::StatusOr<Dim> Divide(const Sum& a, const Sum& b);
  absl::StatusOr<Dim> DivideByNumber(Sum a, int64_t n);
  absl::StatusOr<Dim> DivideByTerm(Sum a, const Sum& b);
  absl::StatusOr<int64_t> Evaluate(const Sum&, std::span<const int64_t> symbols) const;
  absl::StatusOr<int64_t> Evaluate(const Atom&, std::span<const int64_t> symbols) const;
  std::string Print(const Sum&) const;
  std::string PrintAtom(const Atom&) const;
};

absl::Status Overflow();
bool IsNumber(const Sum& sum);

}  // namespace keel::dims
