// regex_parse.cc: the syntax of RE2: literals, escapes, classes, groups, flags, repetitions and places.
#include <algorithm>
#include <map>

#include "plugins/onnx/import/failure.h"
#include "plugins/onnx/ops/regex.h"

namespace onnx_import {
namespace {

constexpr int kMostRepeats = 1000, kMostDepth = 200;  // as RE2

Ranges sorted(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges made;
  for (const auto& [low, high] : ranges) {
    if (!made.empty() && low <= made.back().second + 1)
      made.back().second = std::max(made.back().second, high);
    else
      made.emplace_back(low, high);
  }
  return made;
}

Ranges others(const Ranges& ranges) {
  Ranges made;
  CodePoint next = 0;
  for (const auto& [low, high] : sorted(ranges)) {
    if (low > next) made.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= kLastPoint) made.emplace_back(next, kLastPoint);
  return made;
}

void add(Ranges& to, const Ranges& more) { to.insert(to.end(), more.begin(), more.end()); }

// With the other case of each letter.
Ranges in_both_cases(const Ranges& ranges) {
  const std::vector<CodePoint>&lower = case_mapping(Case::kLower), &upper = case_mapping(Case::kUpper);
  std::vector<bool> wanted(kCased);
  for (const auto& [low, high] : ranges)
    for (CodePoint c = low; c <= high && c < kCased; c++) wanted[lower[c]] = wanted[upper[c]] = true;
  Ranges made = ranges;
  for (CodePoint c = 0; c < kCased; c++)
    if (wanted[lower[c]] || wanted[upper[c]]) made.emplace_back(c, c);
  return sorted(made);
}

const Ranges kDigits = {{'0', '9'}}, kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
             kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

const Ranges* named_class(Text name) {
  static const std::map<Text, Ranges> kNamed = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7f}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {"digit", kDigits},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", kWord},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  const auto found = kNamed.find(name);
  return found == kNamed.end() ? nullptr : &found->second;
}

struct Flags {
  bool any_case = false, dot_all = false, lines = false;
};

class Parser {
 public:
  Parser(Text pattern, std::string what) : text_(code_points(pattern)), what_(std::move(what)) {}

  Regex whole() {
    Regex made = choice(Flags(), 0);
    if (more()) fail("a ) without a (");
    return made;
  }

 private:
  bool more(size_t k = 0) const { return at_ + k < text_.size(); }
  CodePoint peek(size_t k = 0) const { return more(k) ? text_[at_ + k] : 0; }
  bool take(char c) {
    if (!more() || peek() != static_cast<CodePoint>(c)) return false;
    at_++;
    return true;
  }
  [[noreturn]] void fail(const std::string& why) const {
    refuse(KEEL_INVALID, cat(what_, ": ", why, ", at character ", at_));
  }
  [[noreturn]] void unsupported(const std::string& why) const {
    refuse(KEEL_UNIMPLEMENTED, cat(what_, ": ", why, ", at character ", at_));
  }

  // Flags set within hold until the end of the group.
  Regex choice(Flags flags, int depth) {
    if (depth > kMostDepth) unsupported(cat("groups nest deeper than ", kMostDepth));
    Regex made{.kind = Regex::kChoice};
    do made.parts.push_back(sequence(flags, depth));
    while (take('|'));
    return made.parts.size() == 1 ? std::move(made.parts[0]) : made;
  }

  Regex sequence(Flags& flags, int depth) {
    Regex made{.kind = Regex::kSequence};
    while (more() && peek() != '|' && peek() != ')') made.parts.push_back(repeated(atom(flags, depth)));
    return made;
  }

  Regex repeated(Regex part) {
    int least = 0, most = 0;
    if (!repetition(&least, &most)) return part;
    take('?');  // the shortest match: the same strings
    Regex made{.kind = Regex::kRepeat};
    made.parts.push_back(std::move(part)), made.least = least, made.most = most;
    const size_t before = at_;
    if (repetition(&least, &most)) {
      at_ = before;
      fail("a repetition of a repetition; expected a group");
    }
    return made;
  }

  bool repetition(int* least, int* most) {
    if (take('*')) return *least = 0, *most = -1, true;
    if (take('+')) return *least = 1, *most = -1, true;
    if (take('?')) return *least = 0, *most = 1, true;
    const size_t before = at_;
    if (!take('{')) return false;
    const bool first = number(least);
    *most = *least;
    if (first && take(',') && !number(most)) *most = -1;
    if (!first || !take('}')) return at_ = before, false;  // braces that are literal
    if (*least > kMostRepeats || *most > kMostRepeats || (*most >= 0 && *most < *least))
      fail(cat("{", *least, ",", *most, "}: expected numbers in order, at most ", kMostRepeats));
    return true;
  }

  bool number(int* out) {
    int n = 0;
    const size_t before = at_;
    for (; peek() >= '0' && peek() <= '9'; at_++)
      n = std::min(n * 10 + static_cast<int>(peek() - '0'), 100000);
    *out = n;
    return at_ > before;
  }

  static Regex at(Place place) { return {.kind = Regex::kAt, .ranges = {}, .place = place}; }
  static Regex one_of(Ranges ranges, const Flags& flags) {
    ranges = sorted(std::move(ranges));
    return {.kind = Regex::kOneOf, .ranges = flags.any_case ? in_both_cases(ranges) : std::move(ranges)};
  }

  Regex atom(Flags& flags, int depth) {
    if (take('(')) return group(flags, depth);
    if (take('[')) return bracket(flags);
    if (take('.'))
      return {.kind = Regex::kOneOf, .ranges = flags.dot_all ? others({}) : others({{'\n', '\n'}})};
    if (take('^')) return at(flags.lines ? Place::kLineStart : Place::kTextStart);
    if (take('$')) return at(flags.lines ? Place::kLineEnd : Place::kTextEnd);
    if (peek() == '*' || peek() == '+' || peek() == '?') fail("a repetition of nothing");
    if (take('\\')) return escape(flags);
    const CodePoint c = text_[at_++];
    return one_of({{c, c}}, flags);
  }

  Regex group(Flags& flags, int depth) {
    Flags inner = flags;
    if (take('?')) {
      if (peek() == '=' || peek() == '!' || (peek() == '<' && (peek(1) == '=' || peek(1) == '!')))
        unsupported("a look around; RE2 has none");
      if (peek() == '<' || (peek() == 'P' && peek(1) == '<')) {
        while (more() && !take('>')) at_++;
      } else if (!take(':')) {
        read_flags(inner);
        if (take(')')) return flags = inner, Regex();  // for the rest of the enclosing group
        if (!take(':')) fail("a group with an unknown mark after (?");
      }
    }
    Regex made = choice(inner, depth + 1);
    if (!take(')')) fail("a ( without a )");
    return made;
  }

  void read_flags(Flags& flags) {
    for (bool on = true; more() && peek() != ':' && peek() != ')'; at_++) {
      const CodePoint c = peek();
      if (c == 'i')
        flags.any_case = on;
      else if (c == 's')
        flags.dot_all = on;
      else if (c == 'm')
        flags.lines = on;
      else if (c == '-' && on)
        on = false;
      else if (c != 'U')  // which match is shorter does not matter
        fail("an unknown flag; expected i, m, s or U");
    }
  }

  // \d \w \s and the negated ones.
  bool perl_class(CodePoint c, Ranges* out) const {
    const Ranges* known = c == 'd' || c == 'D'   ? &kDigits
                          : c == 'w' || c == 'W' ? &kWord
                          : c == 's' || c == 'S' ? &kSpaces
                                                 : nullptr;
    if (known) *out = c < 'a' ? others(*known) : *known;
    return known;
  }

  Regex escape(const Flags& flags) {
    if (!more()) fail("a \\ at the end");
    Ranges ranges;
    const CodePoint c = peek();
    if (perl_class(c, &ranges)) return at_++, one_of(std::move(ranges), flags);
    if (c == 'Q') return at_++, quoted(flags);
    if (take('A')) return at(Place::kTextStart);
    if (take('z')) return at(Place::kTextEnd);
    if (take('b')) return at(Place::kWordEdge);
    if (take('B')) return at(Place::kNoWordEdge);
    const CodePoint literal = escaped();
    return one_of({{literal, literal}}, flags);
  }

  Regex quoted(const Flags& flags) {
    Regex made{.kind = Regex::kSequence};
    for (; more() && !(peek() == '\\' && peek(1) == 'E'); at_++)
      made.parts.push_back(one_of({{peek(), peek()}}, flags));
    if (more()) at_ += 2;
    return made;
  }

  // The character of an escape, behind the \.
  CodePoint escaped() {
    const CodePoint c = text_[at_++];
    if (c == 'p' || c == 'P') unsupported("\\p: classes of Unicode; list their characters in [ ]");
    if (c == 'C') unsupported("\\C: single bytes");
    constexpr Text kLetters = "afnrtv", kMeant = "\a\f\n\r\t\v";
    if (const size_t k = c < 0x80 ? kLetters.find(static_cast<char>(c)) : Text::npos; k != Text::npos)
      return static_cast<CodePoint>(kMeant[k]);
    if (c == 'x') return hexadecimal();
    if (c >= '0' && c <= '7') return octal(c);
    const bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (word || c >= 0x80) fail("an unknown escape");
    return c;
  }

  CodePoint octal(CodePoint first) {
    CodePoint c = first - '0';
    if (first != '0' && !(peek() >= '0' && peek() <= '7'))
      unsupported("a reference to a group; RE2 has none");
    for (int k = 0; k < 2 && peek() >= '0' && peek() <= '7'; k++) c = c * 8 + (text_[at_++] - '0');
    return c;
  }

  CodePoint hexadecimal() {
    const bool braces = take('{');
    CodePoint c = 0;
    int digits = 0;
    for (; more() && digits < (braces ? 8 : 2); digits++, at_++) {
      const CodePoint d = peek() | 0x20;
      const bool number = peek() >= '0' && peek() <= '9';
      if (!number && (d < 'a' || d > 'f')) break;
      c = c * 16 + (number ? peek() - '0' : d - 'a' + 10);
    }
    if (digits < (braces ? 1 : 2) || (braces && !take('}')) || c > kLastPoint)
      fail("\\x without a code point");
    return c;
  }

  Regex bracket(const Flags& flags) {
    const bool negated = take('^');
    Ranges ranges;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (!more()) fail("a [ without a ]");
      if (!inner_class(ranges)) add(ranges, {range()});
    }
    at_++;
    ranges = one_of(std::move(ranges), flags).ranges;
    return {.kind = Regex::kOneOf, .ranges = negated ? others(ranges) : std::move(ranges)};
  }

  // [:alpha:] or \d within brackets.
  bool inner_class(Ranges& to) {
    Ranges found;
    if (peek() == '\\' && perl_class(peek(1), &found)) return at_ += 2, add(to, found), true;
    if (peek() != '[' || peek(1) != ':') return false;
    std::string name;
    size_t end = at_ + 2;
    for (; end < text_.size() && text_[end] != ':' && text_[end] != ']'; end++) append_utf8(name, text_[end]);
    if (end + 1 >= text_.size() || text_[end] != ':' || text_[end + 1] != ']') return false;
    const bool negated = !name.empty() && name[0] == '^';
    const Ranges* known = named_class(Text(name).substr(negated));
    if (!known) fail(cat("an unknown class [:", name, ":]"));
    at_ = end + 2;
    add(to, negated ? others(*known) : *known);
    return true;
  }

  Range range() {
    const CodePoint low = one();
    if (peek() != '-' || !more(1) || peek(1) == ']') return {low, low};
    at_++;
    const CodePoint high = one();
    if (high < low) fail("a range whose end is before its start");
    return {low, high};
  }
  CodePoint one() {
    if (!more()) fail("a [ without a ]");
    if (!take('\\')) return text_[at_++];
    if (!more()) fail("a \\ at the end");
    return escaped();
  }

  std::vector<CodePoint> text_;
  std::string what_;
  size_t at_ = 0;
};

}  // namespace

Regex parse_regex(Text pattern, const std::string& what) { return Parser(pattern, what).whole(); }

}  // namespace onnx_import
