// sum.h: arithmetic on sums and bounds, independent of handles. Private to kernel/language/dims.
//
// An expression is a sum: constant + coefficient * atom * atom ... + ... Terms are sorted and merged, so
// equal sums are identical.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"

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

// Limits for hostile input: they bound the time of Evaluate and the length of Print.
inline constexpr size_t kMaxTerms = 64, kMaxDegree = 16;

// false: overflow.
bool AddInto(Sum* into, const Sum& other, int64_t factor);
bool Product(const Sum& a, const Sum& b, Sum* out);
// x / d if d (one term or a constant) divides x exactly; else nullopt.
std::optional<Term> Divide(const Term& x, const Term& d);
void AddTerm(Sum* into, Term term, bool* fits);
int64_t FloorDivide(int64_t a, int64_t b);

}  // namespace keel::dims
