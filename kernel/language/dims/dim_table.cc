// dim_table.cc: the table of dims: symbols, simplifying arithmetic, comparison.
#include "kernel/language/dims/dim_table.h"

#include <algorithm>

#include "kernel/language/dims/expressions.h"

namespace keel {

using dims::Atom;
using dims::AtomKind;
using dims::Expressions;
using dims::Interned;
using dims::Range;
using dims::Sum;
using dims::Term;

DimTable::DimTable() : expressions_(std::make_unique<Expressions>()) {}
DimTable::DimTable(const DimTable& other)
    : expressions_(std::make_unique<Expressions>(*other.expressions_)) {}
DimTable::~DimTable() = default;
void DimTable::CopyFrom(const DimTable& other) {
  expressions_ = std::make_unique<Expressions>(*other.expressions_);
}

absl::StatusOr<Dim> DimTable::NewSymbol() {
  size_t number = 0;
  while (FindSymbol(absl::StrCat("size", number))) number++;
  return Symbol(absl::StrCat("size", number));
}

absl::StatusOr<Dim> DimTable::Symbol(std::string_view name) {
  if (auto found = FindSymbol(name)) return *found;
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool good = !name.empty() && name.size() <= 256 && letter(name[0]);
  for (char c : name) good = good && (letter(c) || (c >= '0' && c <= '9'));
  if (!good)
    return Invalid("a symbol's name must be a letter or '_', then letters, digits or '_', at most 256");
  if (expressions_->names.size() >= dims::kMaxSymbols)
    return Exhausted("more than ", dims::kMaxSymbols, " symbols in one module");
  auto number = static_cast<uint32_t>(expressions_->names.size());
  auto id = static_cast<dims::AtomId>(expressions_->atoms.size());
  expressions_->atoms.push_back(Atom{AtomKind::kSymbol, number, 0, 0, Range{0, kMaxDim}, 1, 1});
  ASSIGN_OR_RETURN(Dim handle, expressions_->Intern(Sum{0, {Term{1, {id}}}}));
  expressions_->names.emplace_back(name);
  expressions_->symbols.push_back(handle);
  expressions_->by_name.emplace(std::string(name), number);
  return handle;
}

std::optional<Dim> DimTable::FindSymbol(std::string_view name) const {
  auto found = expressions_->by_name.find(name);
  if (found == expressions_->by_name.end()) return std::nullopt;
  return expressions_->symbols[found->second];
}

size_t DimTable::symbol_count() const { return expressions_->names.size(); }
std::string_view DimTable::symbol_name(size_t index) const { return expressions_->names[index]; }
bool DimTable::Contains(Dim d) const { return !IsSymbolic(d) || expressions_->Find(d) != nullptr; }

std::optional<size_t> DimTable::symbol_index(Dim d) const {
  const Atom* atom = expressions_->AtomOf(d);
  if (!atom || atom->kind != AtomKind::kSymbol) return std::nullopt;
  return atom->symbol;
}

namespace {

absl::Status CheckBoth(const Expressions& e, Dim a, Dim b) {
  RETURN_IF_ERROR(e.Check(a));
  return e.Check(b);
}

// a + factor * b
absl::StatusOr<Dim> AddScaled(Expressions& e, Dim a, Dim b, int64_t factor) {
  RETURN_IF_ERROR(CheckBoth(e, a, b));
  Sum out = e.SumOf(a);
  if (!dims::AddInto(&out, e.SumOf(b), factor)) return dims::Overflow();
  return e.Intern(std::move(out));
}

// Bounds of a - b.
Range Difference(const Expressions& e, Dim a, Dim b) {
  Sum difference = e.SumOf(a);
  bool known = CheckBoth(e, a, b).ok() && dims::AddInto(&difference, e.SumOf(b), -1);
  return known ? e.RangeOf(difference) : Range{-dims::kInfinity, dims::kInfinity};
}

// By bounds, or by the operands of a max or min. steps: the most comparisons.
bool LessEqual(const Expressions& e, Dim a, Dim b, int* steps) {
  if (a == b) return true;
  if (--*steps < 0) return false;
  if (Difference(e, a, b).hi <= 0) return true;
  // Of the operands of an expression of the kind `one` a single one decides, of the other kind both.
  auto decided = [](const Atom* atom, AtomKind one, auto&& holds) {
    if (!atom || (atom->kind != AtomKind::kMax && atom->kind != AtomKind::kMin)) return false;
    bool first = holds(atom->a);
    return first == (atom->kind == one) ? first : holds(atom->b);
  };
  return decided(e.AtomOf(b), AtomKind::kMax, [&](Dim high) { return LessEqual(e, a, high, steps); }) ||
         decided(e.AtomOf(a), AtomKind::kMin, [&](Dim low) { return LessEqual(e, low, b, steps); });
}

}  // namespace

absl::StatusOr<Dim> DimTable::Add(Dim a, Dim b) { return AddScaled(*expressions_, a, b, 1); }
absl::StatusOr<Dim> DimTable::Sub(Dim a, Dim b) { return AddScaled(*expressions_, a, b, -1); }

absl::StatusOr<Dim> DimTable::Mul(Dim a, Dim b) {
  RETURN_IF_ERROR(CheckBoth(*expressions_, a, b));
  Sum out;
  if (!dims::Product(expressions_->SumOf(a), expressions_->SumOf(b), &out)) return dims::Overflow();
  return expressions_->Intern(std::move(out));
}

absl::StatusOr<Dim> DimTable::FloorDiv(Dim a, Dim b) {
  RETURN_IF_ERROR(CheckBoth(*expressions_, a, b));
  return expressions_->Divide(expressions_->SumOf(a), expressions_->SumOf(b));
}

absl::StatusOr<Dim> DimTable::Max(Dim a, Dim b) {
  RETURN_IF_ERROR(CheckBoth(*expressions_, a, b));
  if (AlwaysLessEqual(a, b)) return b;
  if (AlwaysLessEqual(b, a)) return a;
  return expressions_->InternAtom(AtomKind::kMax, std::min(a, b), std::max(a, b));
}

absl::StatusOr<Dim> DimTable::Min(Dim a, Dim b) {
  RETURN_IF_ERROR(CheckBoth(*expressions_, a, b));
  if (AlwaysLessEqual(a, b)) return a;
  if (AlwaysLessEqual(b, a)) return b;
  return expressions_->InternAtom(AtomKind::kMin, std::min(a, b), std::max(a, b));
}

Order DimTable::Compare(Dim a, Dim b) const {
  if (a == b) return Order::kEqual;
  Range range = Difference(*expressions_, a, b);
  if (range.lo > 0) return Order::kGreater;
  return range.hi < 0 ? Order::kLess : Order::kUnknown;
}

bool DimTable::AlwaysLessEqual(Dim a, Dim b) const {
  int steps = 64;
  return LessEqual(*expressions_, a, b, &steps);
}

bool DimTable::NeverNegative(Dim d) const { return AlwaysLessEqual(0, d); }

absl::StatusOr<int64_t> DimTable::Evaluate(Dim d, std::span<const int64_t> symbols) const {
  if (!IsSymbolic(d)) return d;
  RETURN_IF_ERROR(expressions_->Check(d));
  return expressions_->Evaluate(expressions_->Find(d)->sum, symbols);
}

void DimTable::Symbols(Dim d, std::vector<size_t>* out) const {
  const Interned* found = expressions_->Find(d);
  if (!found) return;
  for (const Term& t : found->sum.terms)
    for (auto id : t.atoms) {
      const Atom& atom = expressions_->atoms[id];
      if (atom.kind == AtomKind::kSymbol) {
        if (std::find(out->begin(), out->end(), atom.symbol) == out->end()) out->push_back(atom.symbol);
      } else {
        Symbols(atom.a, out);
        Symbols(atom.b, out);
      }
    }
}

}  // namespace keel
