// text_reader.cc: parses names, types, dims, attributes and literals.

#include "kernel/language/graph/text_reader.h"

#include "kernel/language/graph/element.h"
#include "kernel/language/graph/names.h"

namespace keel {
namespace {

constexpr size_t kMaxDimText = 4096, kMaxListed = 1 << 17;

bool Adjacent(const Lexer& lex, const char* end) {
  const Token& t = lex.Peek();
  if (t.kind == Token::kEnd || t.text.data() != end) return false;
  for (char c : t.text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'))
      return false;
  return true;
}

// Symbols in attributes must exist: a misspelled one would be created.
std::string UnknownSymbol(std::string_view expression, const DimTable& dims) {
  for (Lexer words(expression); !words.AtEnd(); words.Next()) {
    std::string_view word = words.Peek().text;
    if (words.AtName() && word != "max" && word != "min" && !dims.FindSymbol(word)) return std::string(word);
  }
  return "";
}

}  // namespace

absl::Status TextReader::Fail(const Token& at, std::string_view message) const {
  return Invalid(at.line, ":", at.column, ": ", message);
}

absl::Status TextReader::Locate(const Token& at, const absl::Status& s) const {
  return s.ok() ? s : Reword(s, absl::StrCat(at.line, ":", at.column, ": ", s.message()));
}

absl::StatusOr<Spelling> TextReader::ReadName(std::string_view what) {
  Spelling s;
  s.at = lex.Peek();
  if (s.at.kind == Token::kString) {
    ASSIGN_OR_RETURN(s.name, lex.String(what));
    s.quoted = true;
  } else {
    ASSIGN_OR_RETURN(std::string_view first, lex.Name(what));
    const char* end = first.data() + first.size();
    while (Adjacent(lex, end)) {  // the lexer splits at dots
      std::string_view more = lex.Next().text;
      end = more.data() + more.size();
    }
    s.name.assign(first.data(), end);
  }
  RETURN_IF_ERROR(Locate(s.at, CheckName("this", s.name)));
  return s;
}

absl::StatusOr<Dim> TextReader::ReadDim(bool new_symbols) {
  Token at = lex.Peek();
  size_t begin = lex.offset(), end = begin;
  for (int depth = 0; !lex.AtEnd(); lex.Next()) {
    if (depth == 0 && (lex.AtPunct(",") || lex.AtPunct("]") || lex.AtPunct("}"))) break;
    if (lex.AtPunct("(")) depth++;
    if (lex.AtPunct(")") && depth-- == 0) break;
    end = lex.offset() + lex.Peek().text.size();
  }
  std::string_view expression = text.substr(begin, end - begin);
  if (expression.empty()) return lex.FailAt(at, "expected a dim");
  if (expression.size() > kMaxDimText)
    return Fail(at, absl::StrCat("a dim of more than ", kMaxDimText, " characters"));
  int64_t number = 0;
  if (ParseElement(DType::kI64, expression, &number).ok()) {
    if (IsSymbolic(number)) return Fail(at, absl::StrCat("the dim ", number, " is out of range"));
    return number;
  }
  if (std::string unknown = new_symbols ? "" : UnknownSymbol(expression, module.dims); !unknown.empty())
    return Fail(at, absl::StrCat("no type before this declares the dim '", unknown, "'"));
  return Locate(at, module.dims.Parse(expression));
}

absl::StatusOr<TensorType> TextReader::ReadType() {
  Token at = lex.Peek();
  ASSIGN_OR_RETURN(std::string_view name, lex.Name("a type such as f32[b, 2]"));
  auto dtype = ParseDType(name);
  if (!dtype || *dtype == DType::kNone) return Fail(at, absl::StrCat("'", name, "' is not a dtype"));
  TensorType type{*dtype, {}};
  RETURN_IF_ERROR(lex.List("[", "]", [&]() -> absl::Status {
    if (type.dims.size() == kMaxRank)
      return Fail(at, absl::StrCat("the type has more than ", kMaxRank, " dims"));
    ASSIGN_OR_RETURN(type.dims.emplace_back(), ReadDim(true));
    return absl::OkStatus();
  }));
  return type;
}

absl::StatusOr<double> TextReader::ReadDouble(std::string_view what) {
  double value = 0;
  if (AtTypedLiteral()) {
    Token at = lex.Peek();
    ASSIGN_OR_RETURN(Literal literal, ReadTypedLiteral());
    if (literal.dtype != DType::kF64) return Fail(at, absl::StrCat(what, " is an f64"));
    RETURN_IF_ERROR(Encode(at, literal, DType::kF64, &value));
    return value;
  }
  ASSIGN_OR_RETURN(value, lex.Number(what));
  return value;
}

absl::StatusOr<int64_t> TextReader::ReadGraph() {
  RETURN_IF_ERROR(lex.Expect("@"));
  ASSIGN_OR_RETURN(Spelling name, ReadName("a graph's name"));
  return Locate(name.at, module.GraphNumber(name.name));
}

absl::StatusOr<AttrValue> TextReader::ReadScalarAttr(const AttrInfo& info, int32_t kind) {
  AttrValue v;
  v.kind = kind;
  Token at = lex.Peek();
  if (kind == KEEL_ATTR_BOOL) {
    if (!lex.At("true") && !lex.At("false")) return lex.Fail("expected true or false");
    v.i = lex.Next().text == "true";
  } else if (kind == KEEL_ATTR_I64) {
    ASSIGN_OR_RETURN(v.i, lex.Int("an integer"));
  } else if (kind == KEEL_ATTR_F64) {
    ASSIGN_OR_RETURN(v.f, ReadDouble("a number"));
  } else if (kind == KEEL_ATTR_DIM) {
    ASSIGN_OR_RETURN(v.i, ReadDim(info.default_text == kNewSize));
  } else if (kind == KEEL_ATTR_DTYPE) {
    ASSIGN_OR_RETURN(std::string_view word, lex.Name("a dtype"));
    auto dtype = ParseDType(word);
    if (!dtype || *dtype == DType::kNone) return Fail(at, absl::StrCat("'", word, "' is not a dtype"));
    v.i = static_cast<int64_t>(*dtype);
  } else if (kind == KEEL_ATTR_GRAPH) {
    ASSIGN_OR_RETURN(v.i, ReadGraph());
  } else if (at.kind == Token::kString) {
    ASSIGN_OR_RETURN(v.s, lex.String("a string"));
  } else {
    if (info.choices.empty()) return lex.Fail("expected a string in quotes");
    ASSIGN_OR_RETURN(Spelling word, ReadName("a word"));
    v.s = word.name;
  }
  return v;
}

absl::StatusOr<AttrValue> TextReader::ReadListAttr(int32_t kind) {
  AttrValue v;
  v.kind = kind;
  Token at = lex.Peek();
  RETURN_IF_ERROR(lex.List("[", "]", [&]() -> absl::Status {
    if (v.list.size() + v.floats.size() >= kMaxListed) return Fail(at, "the list is too long");
    if (kind == KEEL_ATTR_F64S) {
      ASSIGN_OR_RETURN(v.floats.emplace_back(), ReadDouble("a number"));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(v.list.emplace_back(), kind == KEEL_ATTR_DIMS     ? ReadDim(false)
                                            : kind == KEEL_ATTR_GRAPHS ? ReadGraph()
                                                                       : lex.Int("an integer"));
    return absl::OkStatus();
  }));
  return v;
}

absl::StatusOr<AttrValue> TextReader::ReadAttrValue(const AttrInfo& info) {
  static constexpr std::pair<int32_t, int32_t> kElements[] = {
      {KEEL_ATTR_I64S, KEEL_ATTR_I64}, {KEEL_ATTR_F64S, KEEL_ATTR_F64}, {KEEL_ATTR_DIMS, KEEL_ATTR_DIM}};
  for (auto [list, scalar] : kElements)
    if (info.kind == list) return lex.AtPunct("[") ? ReadListAttr(list) : ReadScalarAttr(info, scalar);
  return info.kind == KEEL_ATTR_GRAPHS ? ReadListAttr(info.kind) : ReadScalarAttr(info, info.kind);
}

absl::StatusOr<Attrs> TextReader::ReadAttrs(const OpFacts& op) {
  Attrs attrs;
  RETURN_IF_ERROR(lex.List("{", "}", [&]() -> absl::Status {
    Token at = lex.Peek();
    ASSIGN_OR_RETURN(std::string_view name, lex.Name("an attribute's name"));
    const AttrInfo* info = op.FindAttr(name);
    if (!info) return Fail(at, absl::StrCat(op.name, " has no attribute '", name, "'"));
    if (attrs.size() >= 64) return Fail(at, "too many attributes");
    RETURN_IF_ERROR(lex.Expect("="));
    ASSIGN_OR_RETURN(AttrValue value, ReadAttrValue(*info));
    attrs.push_back({std::string(name), std::move(value)});
    return absl::OkStatus();
  }));
  return attrs;
}

bool TextReader::AtLiteral() const {
  const Token& t = lex.AtPunct("-") ? lex.PeekSecond() : lex.Peek();
  if (t.kind == Token::kInt || t.kind == Token::kFloat) return true;
  if (t.kind != Token::kName) return false;
  return t.text == "inf" || t.text == "nan" || (!lex.AtPunct("-") && (t.text == "true" || t.text == "false"));
}

absl::StatusOr<Literal> TextReader::ReadLiteral() {
  if (!AtLiteral()) return lex.Fail("expected a number, true or false");
  Literal literal;
  if (lex.Accept("-")) literal.text = "-";
  Token t = lex.Next();
  if (t.text.size() > 400) return Fail(t, "a number of more than 400 characters");
  literal.text += t.text;
  if (t.text == "true" || t.text == "false") literal.dtype = DType::kBool;
  if (t.kind != Token::kInt) literal.weak = Operand::kWeakFloat;
  return literal;
}

bool TextReader::AtTypedLiteral() const {
  if (!lex.AtName() || !ParseDType(lex.Peek().text)) return false;
  Token next = lex.PeekSecond();
  return next.kind == Token::kPunct && next.text == "(";
}

absl::StatusOr<std::string> TextReader::ReadHex(uint64_t bytes) {
  RETURN_IF_ERROR(lex.Expect("hex"));
  Token at = lex.Peek();
  if (at.kind != Token::kString) return lex.Fail("expected hex digits in quotes");
  std::string_view digits = lex.Next().text;
  digits = digits.substr(1, digits.size() - 2);
  if (digits.size() / 2 != bytes || digits.size() % 2)
    return Fail(at, absl::StrCat("expected ", bytes * 2, " hex digits, got ", digits.size()));
  std::string out(bytes, '\0');
  if (!ParseHex(digits, out.data())) return Fail(at, "a character is not a hex digit");
  return out;
}

absl::StatusOr<Literal> TextReader::ReadTypedLiteral() {
  Token at = lex.Peek();
  auto dtype = ParseDType(lex.Next().text);
  if (!dtype || *dtype == DType::kNone) return Fail(at, "not a dtype");
  RETURN_IF_ERROR(lex.Expect("("));
  Literal literal;
  if (lex.At("hex")) {
    ASSIGN_OR_RETURN(literal.bytes, ReadHex(SizeOf(*dtype)));
  } else {
    ASSIGN_OR_RETURN(literal, ReadLiteral());
  }
  literal.dtype = *dtype;
  RETURN_IF_ERROR(lex.Expect(")"));
  return literal;
}

absl::Status TextReader::Encode(const Token& at, const Literal& literal, DType dtype, void* element) const {
  if (!literal.bytes.empty()) {
    std::copy(literal.bytes.begin(), literal.bytes.end(), static_cast<char*>(element));
    return absl::OkStatus();
  }
  return Locate(at, ParseElement(dtype, literal.text, element));
}

}  // namespace keel
