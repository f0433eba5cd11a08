// lexer.h: words of the op language and of graph text, one at a time, with their places.
//
// A Lexer reads a text that the caller keeps alive. It never fails: bad characters and unterminated
// strings come as kBad tokens, which no Accept or Expect takes and Fail explains. Copying a Lexer is
// cheap: copy it to look ahead, assign it back to return.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/base/status.h"

namespace keel {

struct Token {
  enum Kind : uint8_t { kName, kInt, kFloat, kString, kPunct, kBad, kEnd } kind = kEnd;
  bool newline_before = false;  // the first token of its line
  uint32_t line = 1, column = 1;
  std::string_view text;  // the slice of the source; strings with their quotes
};

class Lexer {
 public:
  // `origin` (a file name) begins error messages; it must outlive the lexer too.
  explicit Lexer(std::string_view text, std::string_view origin = {}, uint32_t first_line = 1);

  const Token& Peek() const { return current_; }
  Token PeekSecond() const;
  Token Next();
  void Rename(std::string_view from, std::string_view to);  // from here on, if the current word is not it
  size_t offset() const;                                    // where the current token begins in the text
  bool AtEnd() const { return current_.kind == Token::kEnd; }

  // `word` is a name or a punctuation; names never match strings.
  bool At(std::string_view word) const;
  bool AtName() const { return current_.kind == Token::kName; }
  bool AtPunct(std::string_view p) const { return current_.kind == Token::kPunct && current_.text == p; }
  bool Accept(std::string_view word);
  absl::Status Expect(std::string_view word);

  // `what` names the thing that was wanted in the error: "an op name".
  absl::StatusOr<std::string_view> Name(std::string_view what);
  absl::StatusOr<int64_t> Int(std::string_view what);         // digits, or '-' digits
  absl::StatusOr<double> Number(std::string_view what);       // int or float or inf or nan, or '-' one
  absl::StatusOr<std::string> String(std::string_view what);  // unescaped

  // "origin:3:14: message, got 'x'" at the current token, or at one kept.
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

// The value of a string token's text (quotes included): \n \t \r \" \\ and \xHH.
absl::StatusOr<std::string> Unescape(std::string_view quoted);
std::string Quote(std::string_view);  // the opposite: "..." with escapes
std::string PrintFloat(double);  // shortest digits that read back the same; always with '.', 'e', inf or nan

}  // namespace keel
