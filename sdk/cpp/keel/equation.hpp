// equation.hpp: equations of einsum, and the order of its products. For contraction.hpp.
//
// How to read it: read_equation() makes a label for each dim of each operand. A label is a letter, or a digit
// for a dim of an ellipsis: 0 for the last, 1 for the one before, so that those of different operands
// broadcast. ProductOrder works with sets of labels and sets of operands, a bit for each member.
#ifndef KEEL_EQUATION_HPP
#define KEEL_EQUATION_HPP
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace keel::detail {

/// An equation that is wrong, or does not fit its operands.
struct EquationError : std::invalid_argument {
  enum Fault : uint8_t { kEquation, kSizes, kDtypes };
  EquationError(const std::string& message, std::string hint, Fault fault = kEquation)
      : std::invalid_argument(message), hint(std::move(hint)), fault(fault) {}
  std::string hint;
  Fault fault;
};

struct Equation {
  std::vector<std::string> terms;  // the labels of each operand
  std::string result;              // and of the result
};

inline constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
inline bool is_letter(char label) { return label < '0' || label > '9'; }  // else of an ellipsis
inline std::string quoted(const std::string& text) { return "'" + text + "'"; }

/// "ab...d" in its parts.
struct DottedTerm {
  std::string text, head, tail;
  bool dotted;

  DottedTerm(const std::string& term, const std::string& equation) : text(term) {
    const size_t dots = term.find("...");
    dotted = dots != std::string::npos;
    head = term.substr(0, dots);
    if (dotted) tail = term.substr(dots + 3);
    if ((head + tail).find_first_not_of(kLetters) != std::string::npos)
      throw EquationError(quoted(term) + " in equation " + quoted(equation) +
                              " is no term; expected letters and at most one '...'",
                          "commas separate the operands' terms, and '->' the result's");
  }
  /// The number of dims that the ellipsis stands for.
  size_t dots(const std::string& equation, size_t operand, size_t rank) const {
    const size_t named = head.size() + tail.size();
    if (named == rank || (named < rank && dotted)) return rank - named;
    throw EquationError("term " + quoted(text) + " of equation " + quoted(equation) + " names " +
                            std::to_string(named) + " dims of operand " + std::to_string(operand) +
                            ", which has " + std::to_string(rank),
                        "a term has a letter for each dim; '...' stands for the dims that have none");
  }
  std::string labels(size_t dots) const {
    std::string all = head;
    while (dotted && dots-- > 0) all += static_cast<char>('0' + dots);
    return all + tail;
  }
};

inline int count_of(char label, const std::string& labels) {
  int n = 0;
  for (const char each : labels) n += each == label;
  return n;
}

/// Without "->": the ellipsis, then the labels that occur once, in alphabetical order. all: of all terms.
inline std::string implied_result(const std::string& all, size_t dots) {
  std::string result = DottedTerm("...", "").labels(dots);
  for (const char label : std::string(kLetters))
    if (count_of(label, all) == 1) result += label;
  return result;
}

inline void check_result(const std::string& result, const std::string& all, const std::string& equation) {
  for (const char label : result)
    if (count_of(label, result) > 1 || (is_letter(label) && count_of(label, all) == 0))
      throw EquationError("label " + quoted({label}) +
                              " of the result must occur once there and in a term of " + quoted(equation),
                          "einsum sums over labels that the result lacks, and repeats no dim");
}

inline std::vector<std::string> split_terms(std::string left) {
  std::vector<std::string> terms;
  left += ',';
  for (size_t at = 0, end; (end = left.find(',', at)) != std::string::npos; at = end + 1)
    terms.push_back(left.substr(at, end - at));
  return terms;
}

/// ranks: of the operands. Throws an EquationError.
inline Equation read_equation(const std::string& equation, const std::vector<size_t>& ranks) {
  std::string text, all;
  for (const char c : equation)
    if (c != ' ') text += c;
  const size_t arrow = text.find("->");
  Equation out{split_terms(text.substr(0, arrow)), ""};
  if (out.terms.size() != ranks.size())
    throw EquationError("equation " + quoted(equation) + " has " + std::to_string(out.terms.size()) +
                            " terms for " + std::to_string(ranks.size()) + " operands",
                        "commas separate the terms: 'ij,jk->ik' has two");
  size_t most = 0;
  for (size_t i = 0; i < ranks.size(); i++) {
    const DottedTerm term(out.terms[i], equation);
    const size_t dots = term.dots(equation, i, ranks[i]);
    most = dots > most ? dots : most;
    all += out.terms[i] = term.labels(dots);
  }
  out.result = arrow == std::string::npos ? implied_result(all, most)
                                          : DottedTerm(text.substr(arrow + 2), equation).labels(most);
  check_result(out.result, all, equation);
  return out;
}

/// Sets of labels: 52 letters, and digits for the dims of an ellipsis, at most KEEL_MAX_RANK.
using LabelSet = uint64_t;
inline size_t number_of(char label) {
  return static_cast<size_t>(label >= 'a' ? label - 'a' : label >= 'A' ? label - 'A' + 26 : label - '0' + 52);
}
inline bool contains(LabelSet set, char label) { return set >> number_of(label) & 1; }
inline LabelSet set_of(const std::string& labels) {
  LabelSet set = 0;
  for (const char label : labels) set |= LabelSet{1} << number_of(label);
  return set;
}
using LabelSizes = std::array<double, 64>;  // by number_of()

/// The order of products of two factors at a time that needs the fewest multiplications. A set of factors has
/// a cheapest order: that of its two parts, each in its cheapest order.
class ProductOrder {
 public:
  static constexpr size_t kMost = 10;  // factors; the time grows by 3 with each

  /// terms: the labels of the factors; needed: labels that must remain.
  ProductOrder(const std::vector<LabelSet>& terms, LabelSet needed, const LabelSizes& sizes)
      : sets_(size_t{1} << terms.size()) {
    for (size_t set = 1; set < sets_.size(); set++) {
      LabelSet inside = 0, outside = needed;
      for (size_t i = 0; i < terms.size(); i++) (set >> i & 1 ? inside : outside) |= terms[i];
      sets_[set].kept = inside & outside;
      if (!std::has_single_bit(set)) divide(set, sizes);
    }
  }
  size_t all() const { return sets_.size() - 1; }
  /// One of the two parts that are multiplied last in a set of at least two factors.
  size_t part(size_t set) const { return sets_[set].part; }
  /// The labels of a set that are needed outside of it.
  LabelSet kept(size_t set) const { return sets_[set].kept; }

 private:
  struct Set {
    LabelSet kept = 0;
    size_t part = 0;
    double cost = 0;
  };
  void divide(size_t set, const LabelSizes& sizes) {
    const size_t lowest = set & (~set + 1), others = set ^ lowest;
    sets_[set].cost = std::numeric_limits<double>::infinity();
    try_part(set, set ^ std::bit_floor(set), sizes);  // of equal orders that from the left
    for (size_t more = others; more != 0;) try_part(set, lowest | (more = (more - 1) & others), sizes);
  }
  void try_part(size_t set, size_t part, const LabelSizes& sizes) {
    const Set &one = sets_[part], &other = sets_[set ^ part];
    double cost = 1;
    for (LabelSet left = one.kept | other.kept; left != 0; left &= left - 1)
      cost *= sizes[static_cast<size_t>(std::countr_zero(left))];
    cost += one.cost + other.cost;
    if (cost < sets_[set].cost) sets_[set].cost = cost, sets_[set].part = part;
  }
  std::vector<Set> sets_;
};

}  // namespace keel::detail
#endif
