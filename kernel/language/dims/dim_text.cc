// dim_text.cc: dims to text and back. Parse(Print(d)) is d.

#include <charconv>

#include "kernel/language/dims/dim_table.h"
#include "kernel/language/dims/expressions.h"

namespace keel {

using dims::Atom;
using dims::AtomKind;
using dims::Sum;
using dims::Term;

namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Recursive descent, one function per level of precedence.
class Reader {
 public:
  Reader(std::string_view text, DimTable& table, bool known) : text_(text), table_(table), known_(known) {}

  absl::StatusOr<Dim> All() {
    ASSIGN_OR_RETURN(Dim d, Additive());
    if (Blank() != '\0' || at_ < text_.size()) return Fail("expected an operator or the end");
    return d;
  }

 private:
  char Blank() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) at_++;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Accept(std::string_view word) {
    Blank();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  absl::Status Fail(std::string_view what) {
    return Invalid("dim expression '", text_.substr(0, 80), "': ", what, " at column ", at_ + 1);
  }

  absl::StatusOr<Dim> Additive() {
    if (++depth_ > 64) return Fail("nested too deeply");
    auto left = Multiplicative();
    while (left.ok()) {
      bool plus = Accept("+");
      if (!plus && !Accept("-")) break;
      ASSIGN_OR_RETURN(Dim right, Multiplicative());
      left = plus ? table_.Add(*left, right) : table_.Sub(*left, right);
    }
    depth_--;
    return left;
  }

  absl::StatusOr<Dim> Multiplicative() {
    auto left = Unary();
    while (left.ok()) {
      char op = Accept("//") ? '/' : Accept("*") ? '*' : Accept("%") ? '%' : '\0';
      if (op == '\0') break;
      ASSIGN_OR_RETURN(Dim right, Unary());
      left = op == '*'   ? table_.Mul(*left, right)
             : op == '/' ? table_.FloorDiv(*left, right)
                         : Remainder(*left, right);
    }
    return left;
  }

  absl::StatusOr<Dim> Remainder(Dim a, Dim b) {
    ASSIGN_OR_RETURN(Dim quotient, table_.FloorDiv(a, b));
    ASSIGN_OR_RETURN(Dim whole, table_.Mul(quotient, b));
    return table_.Sub(a, whole);
  }

  absl::StatusOr<Dim> Unary() {
    bool negative = false;
    while (Accept("-")) negative = !negative;
    ASSIGN_OR_RETURN(Dim d, Primary());
    if (negative) return table_.Sub(0, d);
    return d;
  }

  absl::StatusOr<Dim> Primary() {
    char c = Blank();
    if (IsDigit(c)) return Digits();
    if (IsLetter(c)) return Name();
    if (!Accept("(")) return Fail("expected a number, a name or '('");
    ASSIGN_OR_RETURN(Dim d, Additive());
    if (!Accept(")")) return Fail("expected ')'");
    return d;
  }

  absl::Status Unknown(std::string_view name) {
    std::string known;
    for (size_t s = 0; s < table_.symbol_count(); s++)
      absl::StrAppend(&known, s ? ", " : "; the sizes are ", table_.symbol_name(s));
    return NotFound("no size is named ", name, known.empty() ? "; no size has a name" : known);
  }

  absl::StatusOr<Dim> Digits() {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return Fail("the number does not fit in 63 bits");
    at_ = static_cast<size_t>(end - text_.data());
    if (at_ < text_.size() && IsLetter(text_[at_])) return Fail("expected an operator after a number");
    return value;
  }

  absl::StatusOr<Dim> Name() {
    size_t begin = at_;
    while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) at_++;
    std::string_view name = text_.substr(begin, at_ - begin);
    if ((name != "max" && name != "min") || !Accept("("))
      return known_ && !table_.FindSymbol(name) ? Unknown(name) : table_.Symbol(name);
    ASSIGN_OR_RETURN(Dim a, Additive());
    if (!Accept(",")) return Fail("expected ','");
    ASSIGN_OR_RETURN(Dim b, Additive());
    if (!Accept(")")) return Fail("expected ')'");
    return name == "max" ? table_.Max(a, b) : table_.Min(a, b);
  }

  std::string_view text_;
  DimTable& table_;
  bool known_;
  size_t at_ = 0;
  int depth_ = 0;
};

// Needs no parentheses next to //.
bool IsSimple(std::string_view text) {
  for (char c : text)
    if (!IsLetter(c) && !IsDigit(c)) return false;
  return !text.empty();
}

std::string Grouped(std::string text) { return IsSimple(text) ? text : "(" + text + ")"; }

}  // namespace

std::string dims::Expressions::PrintAtom(const Atom& atom) const {
  if (atom.kind == AtomKind::kSymbol) return names[atom.symbol];
  std::string a = Print(SumOf(atom.a)), b = Print(SumOf(atom.b));
  if (atom.kind == AtomKind::kFloorDiv) return absl::StrCat(Grouped(a), "//", Grouped(b));
  return absl::StrCat(atom.kind == AtomKind::kMax ? "max(" : "min(", a, ", ", b, ")");
}

std::string dims::Expressions::Print(const Sum& sum) const {
  std::string out;
  for (const Term& t : sum.terms) {
    bool alone = t.atoms.size() == 1 && t.coefficient == 1;
    if (t.coefficient == -1)
      out += "-";
    else if (t.coefficient != 1)
      absl::StrAppend(&out, !out.empty() && t.coefficient > 0 ? "+" : "", t.coefficient, "*");
    else if (!out.empty())
      out += "+";
    for (size_t i = 0; i < t.atoms.size(); i++) {
      const Atom& atom = atoms[t.atoms[i]];
      std::string text = PrintAtom(atom);
      if (i > 0) out += "*";
      out += atom.kind == AtomKind::kFloorDiv && !alone ? "(" + text + ")" : text;
    }
  }
  if (out.empty() || sum.constant != 0)
    absl::StrAppend(&out, !out.empty() && sum.constant > 0 ? "+" : "", sum.constant);
  return out;
}

std::string DimTable::Print(Dim d) const {
  if (!IsSymbolic(d)) return absl::StrCat(d);
  const dims::Interned* found = expressions_->Find(d);
  return found ? expressions_->Print(found->sum) : "?";
}

absl::StatusOr<Dim> DimTable::Parse(std::string_view expression, bool known) {
  if (expression.size() > dims::kMaxText)
    return Exhausted("a dim expression of ", expression.size(), " bytes is too long");
  return Reader(expression, *this, known).All();
}

}  // namespace keel
