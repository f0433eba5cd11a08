// lexer.h: tokens of the op language and of graph text, with their positions.
//
// A Lexer does not own its text. It never fails: bad characters and unterminated strings are kBad tokens,
// which no Accept or Expect matches and Fail explains. A copy is cheap: copy to look ahead, assign back to
// backtrack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "kernel/base/status.h"

namespace keel {

struct Token {
  enum Kind : uint8_t { kName, kInt, kFloat, kString, kPunct, kBad, kEnd } kind = kEnd;
  bool newline_before = false;  // first token of its line
  uint32_t line = 1, column = 1;
  std::string_view text;  // a slice of the source; strings include their quotes
};

class Lexer {
 public:
  // `origin` (a file name) prefixes error messages; it must outlive the lexer.
  explicit Lexer(std::string_view text, std::string_view origin = {}, uint32_t first_line = 1);

  const Token& Peek() const { return current_; }
  Token PeekSecond() const;
  Token Next();
  void Rename(std::string_view from, std::string_view to);  // from the next token on
  size_t offset() const;                                    // of the current token in the text
  bool AtEnd() const { return current_.kind == Token::kEnd; }

  // `word` is a name or punctuation; strings never match.
  bool At(std::string_view word) const;
  bool AtName() const { return current_.kind == Token::kName; }
  bool AtPunct(std::string_view p) const { return current_.kind == Token::kPunct && current_.text == p; }
  bool Accept(std::string_view word);
  absl::Status Expect(std::string_view word);
  // OPEN item, item ... CLOSE; a comma may follow the last item.
  absl::Status List(std::string_view open, std::string_view close, absl::FunctionRef<absl::Status()> item);

  // `what` describes the expected token in the error: "an op name".
  absl::StatusOr<std::string_view> Name(std::string_view what);
  absl::StatusOr<int64_t> Int(std::string_view what);         // digits, or '-' digits
  absl::StatusOr<double> Number(std::string_view what);       // int, float, inf or nan, optionally after '-'
  absl::StatusOr<std::string> String(std::string_view what);  // unescaped

  // "origin:3:14: message, got 'x'", at the current or at a saved token.
  absl::Status Fail(std::string_view message) const { return FailAt(current_, message); }
  absl::Status FailAt(const Token&, std::string_view message) const;

 private:
  Token Scan();
  void SkipBlanks(Token*);
  void SkipComment();
  void ScanNumber(Token*);
  void ScanString(Token*);

  std::string_view text_, origin_, from_, to_;
  size_t at_ = 0, line_start_ = 0;
  uint32_t line_;
  Token current_;
};

int HexDigit(char c);  // its value; -1: not a hex digit
// The value of a string token (with quotes): \n \t \r \" \\ and \xHH.
absl::StatusOr<std::string> Unescape(std::string_view quoted);
std::string Quote(std::string_view);  // the inverse: "..." with escapes
std::string PrintFloat(double);       // shortest round-trip digits; always contains '.', 'e', inf or nan

}  // namespace keel
