#include "kernel/language/dims/rule.h"

#include "absl/strings/ascii.h"

namespace keel {
namespace {

constexpr size_t kMaxRule = 1024;

// Splits the text at the first occurrence of `word`; false if there is none.
bool Cut(std::string_view text, std::string_view word, std::string_view* left, std::string_view* right) {
  size_t at = text.find(word);
  if (at == std::string_view::npos) return false;
  *left = text.substr(0, at);
  *right = absl::StripAsciiWhitespace(text.substr(at + word.size()));
  return true;
}

absl::StatusOr<Dim> Known(std::string_view expression, DimTable& dims) {
  return dims.Parse(expression, true);
}

absl::StatusOr<std::vector<DimRule>> ParseRange(std::string_view what, std::string_view range,
                                                DimTable& dims) {
  std::string_view low, high;
  if (!Cut(range, "..", &low, &high) || (low.empty() && high.empty()))
    return Invalid("expected a range: 2..65536, 2.. or ..512");
  std::vector<DimRule> rules;
  ASSIGN_OR_RETURN(Dim value, Known(what, dims));
  if (!low.empty()) {
    ASSIGN_OR_RETURN(Dim from, Known(low, dims));
    rules.push_back({from, value, false});
  }
  if (!high.empty()) {
    ASSIGN_OR_RETURN(Dim to, Known(high, dims));
    rules.push_back({value, to, false});
  }
  return rules;
}

struct Comparison {
  std::string_view sign;
  bool equal, swapped;
  int64_t more;  // a < b is a + 1 <= b
};
constexpr Comparison kComparisons[] = {{"==", true, false, 0},
                                       {"<=", false, false, 0},
                                       {">=", false, true, 0},
                                       {"<", false, false, 1},
                                       {">", false, true, 1}};

absl::StatusOr<std::vector<DimRule>> Parse(std::string_view text, DimTable& dims) {
  std::string_view left, right;
  if (text.size() > kMaxRule) return Invalid("it is longer than ", kMaxRule, " bytes");
  if (Cut(text, " in ", &left, &right)) return ParseRange(left, right, dims);
  for (const Comparison& c : kComparisons) {
    if (!Cut(text, c.sign, &left, &right)) continue;
    ASSIGN_OR_RETURN(Dim a, Known(c.swapped ? right : left, dims));
    ASSIGN_OR_RETURN(Dim b, Known(c.swapped ? left : right, dims));
    ASSIGN_OR_RETURN(a, dims.Add(a, c.more));
    return std::vector<DimRule>{{a, b, c.equal}};
  }
  return Invalid("expected `in` with a range, or ==, <=, >=, <, >");
}

}  // namespace

absl::StatusOr<std::vector<DimRule>> ParseRule(std::string_view text, DimTable& dims) {
  absl::StatusOr<std::vector<DimRule>> rules = Parse(text, dims);
  if (rules.ok()) return rules;
  return Annotate(Invalid("rule \"", text.substr(0, 80), "\": ", rules.status().message()), kErrorHint,
                  "examples of size rules: b in 2..65536, b % 8 == 0, n <= 512");
}

std::string PrintRule(const DimRule& rule, const DimTable& dims) {
  return absl::StrCat(dims.Print(rule.a), rule.equal ? " == " : " <= ", dims.Print(rule.b));
}

std::optional<bool> DecidedForAll(const DimRule& rule, const DimTable& dims) {
  Order order = dims.Compare(rule.a, rule.b);
  if (order == Order::kEqual || (!rule.equal && dims.AlwaysLessEqual(rule.a, rule.b))) return true;
  if (order == Order::kGreater || (rule.equal && order == Order::kLess)) return false;
  return std::nullopt;
}

absl::StatusOr<bool> Holds(const DimRule& rule, const DimTable& dims, std::span<const int64_t> symbols) {
  ASSIGN_OR_RETURN(int64_t a, dims.Evaluate(rule.a, symbols));
  ASSIGN_OR_RETURN(int64_t b, dims.Evaluate(rule.b, symbols));
  return rule.equal ? a == b : a <= b;
}

}  // namespace keel
