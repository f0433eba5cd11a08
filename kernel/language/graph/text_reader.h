// text_reader.h: parser of the parts that declarations and function bodies share: names, types, dims,
// attributes, literals. Private to the parser. Errors begin with "line:column: ".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/language/graph/graph.h"
#include "kernel/language/graph/op_facts.h"
#include "kernel/language/opset/lexer.h"

namespace keel {

struct Spelling {
  std::string name;
  bool quoted = false;
  Token at;
};

// A number, inf, nan, true or false; its dtype may still be unknown.
struct Literal {
  std::string text;
  Operand::Kind weak = Operand::kWeakInt;
  DType dtype = DType::kNone;  // as written, or bool
  std::string bytes;           // f32(hex"..."): the element
};

class TextReader {
 public:
  TextReader(std::string_view text, Module& m) : text(text), lex(text), module(m) {}

  absl::StatusOr<Spelling> ReadName(std::string_view what);
  bool AtNameOrString() const { return lex.AtName() || lex.Peek().kind == Token::kString; }
  absl::StatusOr<TensorType> ReadType();
  absl::StatusOr<Attrs> ReadAttrs(const OpFacts&);  // from '{' to '}'
  bool AtLiteral() const;                           // at a number, with or without sign, or true, false
  absl::StatusOr<Literal> ReadLiteral();
  bool AtTypedLiteral() const;  // f32(
  absl::StatusOr<Literal> ReadTypedLiteral();
  absl::StatusOr<std::string> ReadHex(uint64_t bytes);  // hex"..."
  absl::StatusOr<double> ReadDouble(std::string_view what);

  // Encodes one element; the dtype must be known.
  absl::Status Encode(const Token& at, const Literal&, DType dtype, void* element) const;
  absl::Status Fail(const Token& at, std::string_view message) const;
  // Prefixes the message of an error with the position.
  absl::Status Locate(const Token& at, const absl::Status&) const;
  template <typename T>
  absl::StatusOr<T> Locate(const Token& at, absl::StatusOr<T> result) const {
    if (result.ok()) return result;
    return Locate(at, result.status());
  }

  const std::string_view text;
  Lexer lex;
  Module& module;

 private:
  absl::StatusOr<Dim> ReadDim(bool new_symbols);
  absl::StatusOr<AttrValue> ReadAttrValue(const AttrInfo&);
  absl::StatusOr<AttrValue> ReadScalarAttr(const AttrInfo&, int32_t kind);
  absl::StatusOr<AttrValue> ReadListAttr(int32_t kind);
  absl::StatusOr<int64_t> ReadGraph();
};

// Parses one `fn` after its keyword (text_function.cc).
absl::Status ReadFunction(TextReader&);
// Adds a literal as an unnamed scalar constant; returns its index.
absl::StatusOr<uint32_t> AddLiteral(TextReader&, const Token& at, const Literal&, DType dtype);

}  // namespace keel
