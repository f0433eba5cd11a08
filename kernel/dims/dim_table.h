// dim_table.h: the representation of expressions in a DimTable. Private to kernel/dims; read dim.h first.
//
// An expression is a sum: constant + coefficient * atom * atom ... + ... An atom is a symbol or an operation
// outside polynomials (a // b, max, min) on two other dims. Terms are sorted and merged, so equal sums are
// identical, and one map finds the handle of an existing sum.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/base/hash.h"
#include "kernel/dims/dim.h"

namespace keel::dims {

// Bounds of an expression. 128 bits make a product of two symbols exact; values of at least kInfinity mean
// "no bound".
using Wide = __int128;
inline constexpr Wide kInfinity = Wide{1} << 100;
struct Range {
  Wide lo = 0, hi = 0;
};
Range operator+(Range a, Range b);
Range operator*(Range a, Range b);

using AtomId = uint32_t;

struct Term {
  int64_t coefficient = 0;
  absl::InlinedVector<AtomId, 2> atoms;  // sorted; x*x is {x, x}; never empty
};

struct Sum {
  int64_t constant = 0;
  absl::InlinedVector<Term, 2> terms;  // sorted by atoms, longest first; no coefficient is 0
};

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

// Limits for hostile input: they bound the time of Evaluate and the length of Print.
inline constexpr size_t kMaxSymbols = 1 << 16, kMaxSums = 1 << 22, kMaxTerms = 64, kMaxDegree = 16;
inline constexpr uint32_t kMaxWeight = 4096, kMaxDepth = 32;
inline constexpr size_t kMaxText = 1 << 16;

// false: overflow.
bool AddInto(Sum* into, const Sum& other, int64_t factor);
bool Product(const Sum& a, const Sum& b, Sum* out);
// x / d if d (one term or a constant) divides x exactly; else nullopt.
std::optional<Term> Divide(const Term& x, const Term& d);
void AddTerm(Sum* into, Term term, bool* fits);
int64_t FloorDivide(int64_t a, int64_t b);

}  // namespace keel::dims

namespace keel {

struct DimTable::Impl {
  std::deque<dims::Interned> sums;
  std::vector<dims::Atom> atoms;
  std::vector<std::string> names;          // of symbols
  std::vector<Dim> symbols;                // their handles
  HashMap<std::string, uint32_t> by_name;  // -> symbol number
  HashMap<absl::InlinedVector<int64_t, 16>, Dim> handles;
  HashMap<std::tuple<uint8_t, Dim, Dim>, dims::AtomId> atom_ids;

  const dims::Interned* Find(Dim d) const;  // null for numbers and for handles of other tables
  dims::Sum SumOf(Dim d) const;
  dims::Range RangeOf(Dim d) const;
  dims::Range RangeOf(const dims::Sum&) const;
  absl::Status Check(Dim d) const;
  absl::StatusOr<Dim> Intern(dims::Sum sum);
  absl::StatusOr<Dim> InternAtom(dims::AtomKind kind, Dim a, Dim b);
  absl::StatusOr<Dim> Divide(const dims::Sum& a, const dims::Sum& b);
  absl::StatusOr<Dim> DivideByNumber(dims::Sum a, int64_t n);
  absl::StatusOr<Dim> DivideByTerm(dims::Sum a, const dims::Sum& b);
  absl::StatusOr<int64_t> Evaluate(const dims::Sum&, std::span<const int64_t> symbols) const;
  absl::StatusOr<int64_t> Evaluate(const dims::Atom&, std::span<const int64_t> symbols) const;
  std::string Print(const dims::Sum&) const;
  std::string PrintAtom(const dims::Atom&) const;
};

}  // namespace keel
