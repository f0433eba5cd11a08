// expr.h: expressions and blocks of the op language, as trees. The same tree is evaluated statically
// (numbers, dims, lists; eval.h) or as values (ops on tensors; expander.h).
// docs/reference/catalogue_language.md has the grammar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/base/status.h"
#include "kernel/language/opset/lexer.h"
#include "kernel/language/values/dtype.h"

namespace keel::opset {

enum class BinOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kMod,
  kDiv,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr
};
struct BinOpInfo {
  std::string_view text;
  int level;            // higher binds tighter
  std::string_view op;  // the op it denotes between values; "" if none
};
const BinOpInfo& Info(BinOp);

struct Function;  // a shape function, functions.h

struct Expr {
  enum Kind : uint8_t { kInt, kFloat, kString, kName, kList, kNeg, kNot, kBinary, kCond, kCall, kSplice };
  // Meaning of a name or call in static expressions; set by def_resolve.cc.
  enum Ref : uint8_t { kNothing, kSlot, kType, kDType, kBool, kNumber, kOperand };
  Kind kind = kInt;
  BinOp op = BinOp::kAdd;
  Ref ref = kNothing;
  uint16_t index = 0;  // of the slot, type variable, operand; the DType; the bool
  uint32_t line = 0, column = 0;
  int64_t i = 0;
  double f = 0;
  std::string text;                                 // a name, a call's name, a string
  std::vector<Expr> parts;                          // operands; arguments; items; condition, then, else
  std::vector<std::pair<std::string, Expr>> attrs;  // of a call
  const Function* function = nullptr;               // a call of a shape function

  Expr();  // defined below: clang rejects defaults while std::pair<std::string, Expr> is incomplete
  ~Expr();
  Expr(const Expr&);
  Expr(Expr&&) noexcept;
  Expr& operator=(const Expr&);
  Expr& operator=(Expr&&) noexcept;
};
inline Expr::Expr() = default;
inline Expr::~Expr() = default;
inline Expr::Expr(const Expr&) = default;
inline Expr::Expr(Expr&&) noexcept = default;
inline Expr& Expr::operator=(const Expr&) = default;
inline Expr& Expr::operator=(Expr&&) noexcept = default;

struct Statement {
  enum Kind : uint8_t { kAssign, kLet, kReturn } kind = kAssign;
  std::vector<std::string> names;  // kAssign
  uint16_t slot = 0xffff;          // kLet; in a rewrite rule's `where`: the operand
  std::vector<Expr> values;        // kReturn: any number; otherwise one
};
using Block = std::vector<Statement>;

absl::StatusOr<Expr> ParseExpr(Lexer&);
absl::StatusOr<Statement> ParseStatement(Lexer&);
absl::StatusOr<Block> ParseBlock(Lexer&);  // including its braces

}  // namespace keel::opset
