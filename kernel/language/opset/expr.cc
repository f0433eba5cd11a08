// expr.cc: recursive descent; binary operators by precedence climbing.

#include "kernel/language/opset/expr.h"

#include <array>

namespace keel::opset {
namespace {

constexpr int kMaxNesting = 64;
constexpr size_t kMaxParts = 1024;
constexpr int kComparison = 3;

constexpr std::array<BinOpInfo, 14> kBinOps = {{{"+", 4, "add"},
                                                {"-", 4, "sub"},
                                                {"*", 5, "mul"},
                                                {"//", 5, ""},
                                                {"%", 5, ""},
                                                {"/", 5, "div"},
                                                {"==", kComparison, "equal"},
                                                {"!=", kComparison, "not_equal"},
                                                {"<", kComparison, "less"},
                                                {"<=", kComparison, "less_equal"},
                                                {">", kComparison, "greater"},
                                                {">=", kComparison, "greater_equal"},
                                                {"&&", 2, ""},
                                                {"||", 1, ""}}};

class Parser {
 public:
  explicit Parser(Lexer& lex) : lex_(lex) {}

  absl::StatusOr<Expr> Conditional() {
    if (++depth_ > kMaxNesting) return lex_.Fail("expressions are nested too deeply");
    auto out = Binary(1);
    if (out.ok() && lex_.AtPunct("?")) out = Branches(*std::move(out));
    depth_--;
    return out;
  }

 private:
  absl::StatusOr<Expr> Branches(Expr condition) {
    Expr out = Make(Expr::kCond);
    RETURN_IF_ERROR(lex_.Expect("?"));
    out.parts.push_back(std::move(condition));
    ASSIGN_OR_RETURN(Expr then, Conditional());
    RETURN_IF_ERROR(lex_.Expect(":"));
    ASSIGN_OR_RETURN(Expr otherwise, Conditional());
    out.parts.push_back(std::move(then));
    out.parts.push_back(std::move(otherwise));
    return out;
  }

  absl::StatusOr<Expr> Binary(int lowest) {
    ASSIGN_OR_RETURN(Expr left, Unary());
    size_t chained = 0;
    for (int op = Operator(lowest); op >= 0; op = Operator(lowest)) {
      if (++chained > kMaxNesting) return lex_.Fail("too many operators in one expression");
      Expr out = Make(Expr::kBinary);
      out.op = static_cast<BinOp>(op);
      lex_.Next();
      ASSIGN_OR_RETURN(Expr right, Binary(kBinOps[op].level + 1));
      out.parts.push_back(std::move(left));
      out.parts.push_back(std::move(right));
      left = std::move(out);
    }
    return left;
  }

  int Operator(int lowest) const {
    if (lex_.Peek().kind != Token::kPunct || lex_.AtPunct(",") || lex_.AtPunct(")")) return -1;
    for (size_t i = 0; i < kBinOps.size(); i++)
      if (lex_.AtPunct(kBinOps[i].text)) return kBinOps[i].level >= lowest ? static_cast<int>(i) : -1;
    return -1;
  }

  absl::StatusOr<Expr> Unary() {
    bool minus = lex_.AtPunct("-");
    if (!minus && !lex_.AtPunct("!")) return Primary();
    if (++depth_ > kMaxNesting) return lex_.Fail("expressions are nested too deeply");
    Expr out = Make(minus ? Expr::kNeg : Expr::kNot);
    lex_.Next();
    ASSIGN_OR_RETURN(Expr part, Unary());
    depth_--;
    if (minus && part.kind == Expr::kInt) {
      if (KEEL_DIM_IS_HANDLE(-part.i)) return lex_.Fail("the integer before this does not fit in 63 bits");
      return Number(-part.i, part);
    }
    if (minus && part.kind == Expr::kFloat) return Float(-part.f, part);
    out.parts.push_back(std::move(part));
    return out;
  }

  absl::StatusOr<Expr> Primary() {
    Expr out = Make(Expr::kInt);
    switch (lex_.Peek().kind) {
      case Token::kInt: {
        ASSIGN_OR_RETURN(int64_t value, lex_.Int("a number"));
        return Number(value, out);
      }
      case Token::kFloat: {
        ASSIGN_OR_RETURN(double value, lex_.Number("a number"));
        return Float(value, out);
      }
      case Token::kString: {
        out.kind = Expr::kString;
        ASSIGN_OR_RETURN(out.text, lex_.String("a string"));
        return out;
      }
      case Token::kName:
        return NameOrCall();
      default:
        break;
    }
    if (lex_.AtPunct("[")) {
      out.kind = Expr::kList;
      RETURN_IF_ERROR(Items("[", "]", &out.parts));
      return out;
    }
    if (!lex_.Accept("(")) return lex_.Fail("expected an expression");
    ASSIGN_OR_RETURN(out, Conditional());
    RETURN_IF_ERROR(lex_.Expect(")"));
    return out;
  }

  absl::StatusOr<Expr> NameOrCall() {
    Expr out = Make(Expr::kName);
    out.text = lex_.Next().text;
    while (lex_.AtPunct(".") && lex_.PeekSecond().kind == Token::kName) {  // ops of plugins: vendor.name
      lex_.Next();
      out.text += "." + std::string(lex_.Next().text);
    }
    if (!lex_.AtPunct("(")) return out;
    out.kind = Expr::kCall;
    RETURN_IF_ERROR(Items("(", ")", &out.parts));
    if (!lex_.AtPunct("{")) return out;
    RETURN_IF_ERROR(lex_.List("{", "}", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(std::string_view name, lex_.Name("an attribute's name"));
      RETURN_IF_ERROR(lex_.Expect("="));
      ASSIGN_OR_RETURN(Expr value, Conditional());
      out.attrs.emplace_back(name, std::move(value));
      return out.attrs.size() > kMaxParts ? lex_.Fail("too many attributes") : absl::OkStatus();
    }));
    return out;
  }

  absl::Status Items(std::string_view open, std::string_view close, std::vector<Expr>* out) {
    return lex_.List(open, close, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(Expr item, Conditional());
      if (lex_.AtPunct("..") || lex_.AtPunct("...")) {
        Expr splice = Make(Expr::kSplice);
        lex_.Next();
        splice.parts.push_back(std::move(item));
        item = std::move(splice);
      }
      out->push_back(std::move(item));
      return out->size() > kMaxParts ? lex_.Fail("the list is too long") : absl::OkStatus();
    });
  }

  Expr Make(Expr::Kind kind) const {
    Expr out;
    out.kind = kind;
    out.line = lex_.Peek().line;
    out.column = lex_.Peek().column;
    return out;
  }
  static Expr Number(int64_t value, Expr at) {
    at.kind = Expr::kInt;
    at.i = value;
    return at;
  }
  static Expr Float(double value, Expr at) {
    at.kind = Expr::kFloat;
    at.f = value;
    return at;
  }

  Lexer& lex_;
  int depth_ = 0;
};

absl::StatusOr<Expr> ValueItem(Lexer& lex) {
  ASSIGN_OR_RETURN(Expr value, ParseExpr(lex));
  if (!lex.AtPunct("...")) return value;
  Expr splice;
  splice.kind = Expr::kSplice;
  splice.line = lex.Next().line;
  splice.parts.push_back(std::move(value));
  return splice;
}

}  // namespace

const BinOpInfo& Info(BinOp op) { return kBinOps[static_cast<size_t>(op)]; }

absl::StatusOr<Expr> ParseExpr(Lexer& lex) { return Parser(lex).Conditional(); }

absl::StatusOr<Statement> ParseStatement(Lexer& lex) {
  Statement out;
  if (lex.Accept("return")) {
    out.kind = Statement::kReturn;
    do {
      ASSIGN_OR_RETURN(Expr value, ValueItem(lex));
      out.values.push_back(std::move(value));
    } while (lex.Accept(",") && out.values.size() < kMaxParts);
    return out;
  }
  if (lex.At("let") && lex.PeekSecond().kind == Token::kName) {
    out.kind = Statement::kLet;
    lex.Next();
  }
  do {
    ASSIGN_OR_RETURN(std::string_view name, lex.Name("a statement"));
    out.names.emplace_back(name);
  } while (out.kind != Statement::kLet && out.names.size() < kMaxParts && lex.Accept(","));
  RETURN_IF_ERROR(lex.Expect("="));
  ASSIGN_OR_RETURN(Expr value, ParseExpr(lex));
  out.values.push_back(std::move(value));
  return out;
}

absl::StatusOr<Block> ParseBlock(Lexer& lex) {
  Block out;
  RETURN_IF_ERROR(lex.Expect("{"));
  while (!lex.AtPunct("}")) {
    if (!out.empty() && out.back().kind == Statement::kReturn) return lex.Fail("expected '}' after return");
    if (out.size() >= kMaxParts) return lex.Fail("the block is too long");
    ASSIGN_OR_RETURN(Statement s, ParseStatement(lex));
    out.push_back(std::move(s));
  }
  if (out.empty() || out.back().kind != Statement::kReturn) return lex.Fail("a block must end with return");
  lex.Next();
  return out;
}

}  // namespace keel::opset
