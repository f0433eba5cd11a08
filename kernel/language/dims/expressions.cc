// expressions.cc: handles of expressions, division and evaluation. Text: dim_text.cc.
#include "kernel/language/dims/expressions.h"

#include <algorithm>
#include <limits>

namespace keel::dims {
namespace {

constexpr int64_t kHandleBase = std::numeric_limits<int64_t>::min();

absl::Status DivisionByZero() { return Invalid("a dim is divided by zero"); }

// A number outside the range of handles.
absl::StatusOr<Dim> Number(int64_t n) {
  if (IsSymbolic(n)) return Overflow();
  return n;
}

Range DivideRange(Range a, Range b) {
  if (b.lo < 0 || b.hi <= 0) return {-kInfinity, kInfinity};
  b.lo = std::max<Wide>(b.lo, 1);  // b = 0 has no quotient, so it needs no bound
  auto floor = [](Wide x, Wide y) { return x >= 0 ? x / y : -((-x + y - 1) / y); };
  Range out{floor(a.lo, a.lo >= 0 ? b.hi : b.lo), floor(a.hi, a.hi >= 0 ? b.lo : b.hi)};
  if (a.lo <= -kInfinity) out.lo = -kInfinity;
  if (a.hi >= kInfinity) out.hi = kInfinity;
  return out;
}

Range AtomRange(AtomKind kind, Range a, Range b) {
  if (kind == AtomKind::kFloorDiv) return DivideRange(a, b);
  if (kind == AtomKind::kMax) return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}

}  // namespace

absl::Status Overflow() { return Invalid("a dim expression is too large: it overflows 63 bits"); }
bool IsNumber(const Sum& sum) { return sum.terms.empty(); }

const Interned* Expressions::Find(Dim d) const {
  if (!IsSymbolic(d)) return nullptr;
  auto index = static_cast<uint64_t>(d) - static_cast<uint64_t>(kHandleBase);
  return index < sums.size() ? &sums[index] : nullptr;
}

const Atom* Expressions::AtomOf(Dim d) const {
  const Interned* found = Find(d);
  if (!found || found->sum.constant != 0 || found->sum.terms.size() != 1) return nullptr;
  const Term& t = found->sum.terms[0];
  return t.coefficient == 1 && t.atoms.size() == 1 ? &atoms[t.atoms[0]] : nullptr;
}

Sum Expressions::SumOf(Dim d) const {
  if (const Interned* found = Find(d)) return found->sum;
  return Sum{d, {}};
}

Range Expressions::RangeOf(Dim d) const {
  if (const Interned* found = Find(d)) return found->range;
  return {d, d};
}

Range Expressions::RangeOf(const Sum& sum) const {
  Range total{sum.constant, sum.constant};
  for (const Term& t : sum.terms) {
    Range product{t.coefficient, t.coefficient};
    for (auto atom : t.atoms) product = product * atoms[atom].range;
    total = total + product;
  }
  return total;
}

absl::Status Expressions::Check(Dim d) const {
  if (!IsSymbolic(d) || Find(d)) return absl::OkStatus();
  return Invalid("a dim is a handle of another module");
}

absl::StatusOr<Dim> Expressions::Intern(Sum sum) {
  if (IsNumber(sum)) return Number(sum.constant);
  absl::InlinedVector<int64_t, 16> key{sum.constant};
  Interned made;
  for (const Term& t : sum.terms) {
    key.push_back(t.coefficient);
    key.push_back(static_cast<int64_t>(t.atoms.size()));
    for (auto atom : t.atoms) {
      key.push_back(atom);
      made.weight += atoms[atom].weight;
      made.depth = std::max(made.depth, atoms[atom].depth);
    }
  }
  if (auto found = handles.find(key); found != handles.end()) return found->second;
  if (sum.terms.size() > kMaxTerms || made.weight > kMaxWeight || made.depth > kMaxDepth)
    return Exhausted("a dim expression is too large (at most ", kMaxTerms, " terms and ", kMaxWeight,
                     " symbols)");
  if (sums.size() >= kMaxSums)
    return Exhausted("more than ", kMaxSums, " different dim expressions in one module");
  made.range = RangeOf(sum);
  made.sum = std::move(sum);
  Dim handle = kHandleBase + static_cast<int64_t>(sums.size());
  sums.push_back(std::move(made));
  handles.emplace(std::move(key), handle);
  return handle;
}

absl::StatusOr<Dim> Expressions::InternAtom(AtomKind kind, Dim a, Dim b) {
  auto [place, fresh] =
      atom_ids.try_emplace({static_cast<uint8_t>(kind), a, b}, static_cast<AtomId>(atoms.size()));
  AtomId id = place->second;
  if (fresh) {
    Atom atom{kind, 0, a, b, AtomRange(kind, RangeOf(a), RangeOf(b)), 1, 1};
    for (Dim d : {a, b}) {
      const Interned* part = Find(d);
      if (!part) continue;
      atom.weight += part->weight;
      atom.depth = std::max(atom.depth, part->depth + 1);
    }
    atoms.push_back(atom);
  }
  return Intern(Sum{0, {Term{1, {id}}}});
}

// a = n * q + r with 0 <= coefficients of r < n, so a // n = q + r // n.
absl::StatusOr<Dim> Expressions::DivideByNumber(Sum a, int64_t n) {
  if (n == 0) return DivisionByZero();
  if (n < 0) {
    if (n == std::numeric_limits<int64_t>::min()) return Overflow();
    Sum negated;
    if (!AddInto(&negated, a, -1)) return Overflow();
    a = std::move(negated);
    n = -n;
  }
  auto rest_of = [n](int64_t x) { return x % n + (x % n < 0 ? n : 0); };
  Sum q{FloorDivide(a.constant, n), {}}, r{rest_of(a.constant), {}};
  bool fits = true;
  for (const Term& t : a.terms) {
    AddTerm(&q, Term{FloorDivide(t.coefficient, n), t.atoms}, &fits);
    AddTerm(&r, Term{rest_of(t.coefficient), t.atoms}, &fits);
  }
  if (!fits) return Overflow();
  Range rest = RangeOf(r);
  if (IsNumber(r) || (rest.lo >= 0 && rest.hi < n)) return Intern(std::move(q));
  // (x // m + c) // n = (x + c * m) // (m * n)
  if (r.terms.size() == 1 && r.terms[0].coefficient == 1 && r.terms[0].atoms.size() == 1) {
    const Atom inner = atoms[r.terms[0].atoms[0]];
    int64_t shift = 0, divisor = 0;
    Sum x = SumOf(inner.a);
    if (inner.kind == AtomKind::kFloorDiv && !IsSymbolic(inner.b) && inner.b > 0 &&
        !__builtin_mul_overflow(r.constant, inner.b, &shift) &&
        !__builtin_mul_overflow(inner.b, n, &divisor) && AddInto(&x, Sum{shift, {}}, 1)) {
      auto nested = DivideByNumber(std::move(x), divisor);
      if (!nested.ok()) return nested;
      if (!AddInto(&q, SumOf(*nested), 1)) return Overflow();
      return Intern(std::move(q));
    }
  }
  ASSIGN_OR_RETURN(Dim numerator, Intern(std::move(r)));
  ASSIGN_OR_RETURN(Dim atom, InternAtom(AtomKind::kFloorDiv, numerator, n));
  if (!AddInto(&q, SumOf(atom), 1)) return Overflow();
  return Intern(std::move(q));
}

// Terms that b divides exactly leave the division; the rest becomes an atom.
absl::StatusOr<Dim> Expressions::DivideByTerm(Sum a, const Sum& b) {
  Sum q, r{a.constant, {}};
  bool fits = true;
  bool monomial = b.terms.size() == 1 && b.constant == 0;
  for (const Term& t : a.terms) {
    auto exact = monomial ? dims::Divide(t, b.terms[0]) : std::nullopt;
    if (!exact)
      AddTerm(&r, t, &fits);
    else if (exact->atoms.empty())
      fits &= !__builtin_add_overflow(q.constant, exact->coefficient, &q.constant);
    else
      AddTerm(&q, *std::move(exact), &fits);
  }
  if (!fits) return Overflow();
  if (!IsNumber(r) || r.constant != 0) {
    ASSIGN_OR_RETURN(Dim numerator, Intern(std::move(r)));
    ASSIGN_OR_RETURN(Dim divisor, Intern(b));
    ASSIGN_OR_RETURN(Dim atom, InternAtom(AtomKind::kFloorDiv, numerator, divisor));
    if (!AddInto(&q, SumOf(atom), 1)) return Overflow();
  }
  return Intern(std::move(q));
}

absl::StatusOr<Dim> Expressions::Divide(const Sum& a, const Sum& b) {
  if (IsNumber(b)) return DivideByNumber(a, b.constant);
  // k * b // b is k for any sum b: compares a with b scaled by the quotient of the first terms.
  if (!a.terms.empty() && a.terms.size() == b.terms.size() && a.terms[0].atoms == b.terms[0].atoms) {
    if (auto k = dims::Divide(a.terms[0], b.terms[0])) {
      Sum rest = a;
      if (k->coefficient != std::numeric_limits<int64_t>::min() && AddInto(&rest, b, -k->coefficient) &&
          IsNumber(rest) && rest.constant == 0)
        return Number(k->coefficient);
    }
  }
  return DivideByTerm(a, b);
}

absl::StatusOr<int64_t> Expressions::Evaluate(const Atom& atom, std::span<const int64_t> values) const {
  if (atom.kind == AtomKind::kSymbol) {
    if (atom.symbol >= values.size()) return Invalid("no value for the symbol ", names[atom.symbol]);
    return values[atom.symbol];
  }
  ASSIGN_OR_RETURN(int64_t a, Evaluate(SumOf(atom.a), values));
  ASSIGN_OR_RETURN(int64_t b, Evaluate(SumOf(atom.b), values));
  if (atom.kind == AtomKind::kMax) return std::max(a, b);
  if (atom.kind == AtomKind::kMin) return std::min(a, b);
  if (b == 0) return DivisionByZero();
  if (b == -1 && a == std::numeric_limits<int64_t>::min()) return Overflow();
  return FloorDivide(a, b);
}

absl::StatusOr<int64_t> Expressions::Evaluate(const Sum& sum, std::span<const int64_t> values) const {
  int64_t total = sum.constant;
  for (const Term& t : sum.terms) {
    int64_t product = t.coefficient;
    for (auto atom : t.atoms) {
      ASSIGN_OR_RETURN(int64_t factor, Evaluate(atoms[atom], values));
      if (__builtin_mul_overflow(product, factor, &product)) return Overflow();
    }
    if (__builtin_add_overflow(total, product, &total)) return Overflow();
  }
  return total;
}

}  // namespace keel::dims
