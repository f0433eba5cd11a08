// lexer.cc: scanning, and errors with positions.

#include "kernel/language/opset/lexer.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace keel {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Longest first: the first match wins.
constexpr std::string_view kPuncts[] = {"...", "->", "..", "//", "==", "!=", "<=", ">=", "&&", "||"};
constexpr std::string_view kSingles = "()[]{}<>,:;=+-*/%!?@.|&^~$";

std::string Printable(const Token& t) {
  if (t.kind == Token::kEnd) return "the end of the text";
  std::string_view text = t.text.substr(0, 40);
  std::string out;
  for (char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return absl::StrCat("'", out, t.text.size() > 40 ? "..." : "", "'");
}

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view origin, uint32_t first_line)
    : text_(text), origin_(origin), line_(first_line) {
  current_ = Scan();
  current_.newline_before = true;
}

size_t Lexer::offset() const { return static_cast<size_t>(current_.text.data() - text_.data()); }

void Lexer::Rename(std::string_view from, std::string_view to) {
  from_ = from;
  to_ = to;
}

Token Lexer::Next() { return std::exchange(current_, Scan()); }

Token Lexer::PeekSecond() const {
  Lexer copy = *this;
  return copy.Scan();
}

void Lexer::SkipComment() {
  while (at_ < text_.size() && text_[at_] != '\n') at_++;
}

void Lexer::SkipBlanks(Token* t) {
  for (; at_ < text_.size(); at_++) {
    char c = text_[at_];
    if (c == '#') SkipComment();
    if (at_ >= text_.size()) return;
    c = text_[at_];
    if (c == '\n') {
      t->newline_before = true;
      line_++;
      line_start_ = at_ + 1;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

Token Lexer::Scan() {
  Token t;
  SkipBlanks(&t);
  t.line = line_;
  t.column = static_cast<uint32_t>(at_ - line_start_ + 1);
  size_t begin = at_;
  if (at_ >= text_.size()) {
    t.text = text_.substr(text_.size());
    return t;
  }
  char c = text_[at_];
  if (IsLetter(c)) {
    t.kind = Token::kName;
    while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) at_++;
  } else if (IsDigit(c)) {
    ScanNumber(&t);
  } else if (c == '"') {
    ScanString(&t);
  } else {
    t.kind = kSingles.find(c) != std::string_view::npos ? Token::kPunct : Token::kBad;
    size_t length = 1;
    for (std::string_view p : kPuncts)
      if (c == p[0] && length == 1 && text_.substr(at_, p.size()) == p) length = p.size();
    at_ += length;
  }
  t.text = text_.substr(begin, at_ - begin);
  if (t.kind == Token::kName && t.text == from_) t.text = to_;
  return t;
}

void Lexer::ScanNumber(Token* t) {
  auto digit_at = [&](size_t i) { return i < text_.size() && IsDigit(text_[i]); };
  auto skip_digits = [&] {
    while (digit_at(at_)) at_++;
  };
  t->kind = Token::kInt;
  skip_digits();
  if (at_ < text_.size() && text_[at_] == '.' && digit_at(at_ + 1)) {
    t->kind = Token::kFloat;
    at_++;
    skip_digits();
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    size_t sign = at_ + 1 < text_.size() && (text_[at_ + 1] == '-' || text_[at_ + 1] == '+') ? 1 : 0;
    if (!digit_at(at_ + 1 + sign)) return;
    t->kind = Token::kFloat;
    at_ += 1 + sign;
    skip_digits();
  }
}

void Lexer::ScanString(Token* t) {
  t->kind = Token::kBad;  // until the closing quote
  for (at_++; at_ < text_.size() && text_[at_] != '\n'; at_++) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
      at_++;
    } else if (text_[at_] == '"') {
      at_++;
      t->kind = Token::kString;
      return;
    }
  }
}

bool Lexer::At(std::string_view word) const {
  return (current_.kind == Token::kName || current_.kind == Token::kPunct) && current_.text == word;
}

bool Lexer::Accept(std::string_view word) {
  if (!At(word)) return false;
  Next();
  return true;
}

absl::Status Lexer::Expect(std::string_view word) {
  if (Accept(word)) return absl::OkStatus();
  return Fail(absl::StrCat("expected '", word, "'"));
}

absl::Status Lexer::List(std::string_view open, std::string_view close,
                         absl::FunctionRef<absl::Status()> item) {
  RETURN_IF_ERROR(Expect(open));
  while (!Accept(close)) {
    RETURN_IF_ERROR(item());
    if (!Accept(",") && !AtPunct(close)) return Fail(absl::StrCat("expected ',' or '", close, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> Lexer::Name(std::string_view what) {
  if (current_.kind != Token::kName) return Fail(absl::StrCat("expected ", what));
  return Next().text;
}

absl::StatusOr<int64_t> Lexer::Int(std::string_view what) {
  Token first = current_;
  bool negative = Accept("-");
  if (current_.kind != Token::kInt) return Fail(absl::StrCat("expected ", what));
  uint64_t value = 0;
  std::string_view text = Next().text;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (error != std::errc() || end != text.data() + text.size() || value > limit)
    return FailAt(first, "the integer does not fit in 64 bits");
  return static_cast<int64_t>(negative ? ~value + 1 : value);
}

absl::StatusOr<double> Lexer::Number(std::string_view what) {
  double sign = Accept("-") ? -1.0 : 1.0;
  if (Accept("inf")) return sign * std::numeric_limits<double>::infinity();
  if (Accept("nan")) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (current_.kind != Token::kInt && current_.kind != Token::kFloat)
    return Fail(absl::StrCat("expected ", what));
  Token token = Next();
  double value = 0;
  auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
  if (error == std::errc::result_out_of_range) return FailAt(token, "the number does not fit in an f64");
  return sign * value;
}

absl::StatusOr<std::string> Lexer::String(std::string_view what) {
  if (current_.kind != Token::kString) return Fail(absl::StrCat("expected ", what));
  Token token = Next();
  auto value = Unescape(token.text);
  if (!value.ok()) return FailAt(token, value.status().message());
  return value;
}

absl::Status Lexer::FailAt(const Token& t, std::string_view message) const {
  std::string_view colon = origin_.empty() ? "" : ":";
  std::string_view why;
  if (t.kind == Token::kBad) why = t.text[0] == '"' ? " (unterminated string)" : " (invalid character)";
  return Invalid(origin_, colon, t.line, ":", t.column, ": ", message, ", got ", Printable(t), why);
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

absl::StatusOr<std::string> Unescape(std::string_view quoted) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"')
    return Invalid("not a quoted string");
  quoted = quoted.substr(1, quoted.size() - 2);
  constexpr std::string_view kCodes = "ntr\"\\", kChars = "\n\t\r\"\\";
  std::string out;
  for (size_t i = 0; i < quoted.size(); i++) {
    if (quoted[i] != '\\') {
      out += quoted[i];
      continue;
    }
    char code = ++i < quoted.size() ? quoted[i] : '\0';
    if (size_t k = kCodes.find(code); k != std::string_view::npos) {
      out += kChars[k];
    } else if (code == 'x' && i + 2 < quoted.size() && HexDigit(quoted[i + 1]) >= 0 &&
               HexDigit(quoted[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(quoted[i + 1]) * 16 + HexDigit(quoted[i + 2]));
      i += 2;
    } else {
      return Invalid("unknown escape in a string (known: \\n \\t \\r \\\" \\\\ \\xHH)");
    }
  }
  return out;
}

std::string Quote(std::string_view s) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr std::string_view kCodes = "ntr\"\\", kChars = "\n\t\r\"\\";
  std::string out = "\"";
  for (char c : s) {
    auto byte = static_cast<unsigned char>(c);
    if (size_t k = kChars.find(c); k != std::string_view::npos) {
      out += '\\';
      out += kCodes[k];
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string PrintFloat(double v) {
  if (std::isnan(v)) return std::signbit(v) ? "-nan" : "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string out(buffer, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

}  // namespace keel
