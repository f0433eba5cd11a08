#include "kernel/language/dims/sum.h"

#include <algorithm>
#include <limits>

namespace keel::dims {
namespace {

Wide Clamp(Wide v) { return std::clamp(v, -kInfinity, kInfinity); }
bool Infinite(Wide v) { return v <= -kInfinity || v >= kInfinity; }

Wide SaturatedProduct(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  Wide out = 0;
  if (Infinite(a) || Infinite(b) || __builtin_mul_overflow(a, b, &out))
    return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
  return Clamp(out);
}

// Longer products first, then by atom number: "b*s + b + 1".
bool Precedes(const Term& a, const Term& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
  return a.atoms < b.atoms;
}

}  // namespace

Range operator+(Range a, Range b) {
  Range out;
  out.lo = a.lo <= -kInfinity || b.lo <= -kInfinity ? -kInfinity : Clamp(a.lo + b.lo);
  out.hi = a.hi >= kInfinity || b.hi >= kInfinity ? kInfinity : Clamp(a.hi + b.hi);
  return out;
}

Range operator*(Range a, Range b) {
  Wide corners[] = {SaturatedProduct(a.lo, b.lo), SaturatedProduct(a.lo, b.hi), SaturatedProduct(a.hi, b.lo),
                    SaturatedProduct(a.hi, b.hi)};
  auto [lo, hi] = std::minmax_element(std::begin(corners), std::end(corners));
  return {*lo, *hi};
}

int64_t FloorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

void AddTerm(Sum* into, Term term, bool* fits) {
  auto place = std::lower_bound(into->terms.begin(), into->terms.end(), term, Precedes);
  if (place == into->terms.end() || place->atoms != term.atoms) {
    if (term.coefficient != 0) into->terms.insert(place, std::move(term));
    return;
  }
  if (__builtin_add_overflow(place->coefficient, term.coefficient, &place->coefficient)) *fits = false;
  if (place->coefficient == 0) into->terms.erase(place);
}

bool AddInto(Sum* into, const Sum& other, int64_t factor) {
  bool fits = true;
  int64_t scaled = 0;
  fits &= !__builtin_mul_overflow(other.constant, factor, &scaled);
  fits &= !__builtin_add_overflow(into->constant, scaled, &into->constant);
  for (Term t : other.terms) {
    fits &= !__builtin_mul_overflow(t.coefficient, factor, &t.coefficient);
    AddTerm(into, std::move(t), &fits);
  }
  return fits;
}

bool Product(const Sum& a, const Sum& b, Sum* out) {
  if (!AddInto(out, a, b.constant)) return false;
  for (const Term& t : b.terms) {
    bool fits = true;
    Term scaled{0, t.atoms};
    fits &= !__builtin_mul_overflow(a.constant, t.coefficient, &scaled.coefficient);
    AddTerm(out, std::move(scaled), &fits);
    for (const Term& u : a.terms) {
      Term both{0, u.atoms};
      fits &= !__builtin_mul_overflow(u.coefficient, t.coefficient, &both.coefficient);
      both.atoms.insert(both.atoms.end(), t.atoms.begin(), t.atoms.end());
      if (both.atoms.size() > kMaxDegree) return false;
      std::sort(both.atoms.begin(), both.atoms.end());
      AddTerm(out, std::move(both), &fits);
    }
    if (!fits || out->terms.size() > kMaxTerms) return false;
  }
  return true;
}

std::optional<Term> Divide(const Term& x, const Term& d) {
  if (d.coefficient == -1 && x.coefficient == std::numeric_limits<int64_t>::min()) return std::nullopt;
  if (x.coefficient % d.coefficient != 0) return std::nullopt;
  Term out{x.coefficient / d.coefficient, {}};
  size_t at = 0;
  for (AtomId atom : x.atoms) {
    if (at < d.atoms.size() && d.atoms[at] == atom)
      at++;
    else
      out.atoms.push_back(atom);
  }
  if (at != d.atoms.size()) return std::nullopt;
  return out;
}

}  // namespace keel::dims
