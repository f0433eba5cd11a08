// text_function.h: the reader of one `fn`. A statement is `names = expression : types`; an expression is a
// call, possibly with calls and infix operators inside, which become unnamed nodes at once. Only the
// outermost call waits, for its names and types: a Call. Statements are read in text_function.cc,
// expressions in text_expression.cc. Private to those two.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/graph/text_reader.h"

namespace keel {

struct Call;
// What an expression is before it is used: a value, a literal without dtype, nothing, or a call.
struct Expr {
  enum Kind : uint8_t { kValue, kLiteral, kNone, kCall } kind = kNone;
  ValueId value = kNoValue;
  Literal literal;
  std::unique_ptr<Call> call;
  Token at;
};
struct Call {
  const OpDef* op = nullptr;
  std::vector<Expr> in;  // never calls
  Attrs attrs;
  uint32_t device = 0;  // its scope
};

class FunctionReader {
 public:
  explicit FunctionReader(TextReader& r) : r_(r), lex_(r.lex) {}
  absl::Status Run();

 private:
  struct SignatureResult {
    std::string name;
    TensorType type;
    Token at;
  };
  absl::Status Params();
  absl::Status SignatureResults();
  absl::Status Statement();
  absl::Status Return();
  absl::StatusOr<std::vector<Spelling>> StatementNames();
  absl::StatusOr<std::vector<TensorType>> DeclaredTypes();
  absl::StatusOr<Expr> Expression(int depth);
  absl::StatusOr<Expr> Binary(int depth, size_t level);
  absl::StatusOr<Expr> Unary(int depth);
  absl::StatusOr<Expr> Primary(int depth);
  absl::StatusOr<Expr> CallOrName(int depth);
  absl::Status VariableOf(Call* call);
  absl::Status Operands(int depth, Call* call);
  absl::StatusOr<Expr> MakeCall(const Token& at, std::string_view op, std::vector<Expr> in);
  absl::StatusOr<ValueId> Resolve(const Spelling&);
  absl::Status Settle(Expr*);  // a call becomes the value of its node
  absl::StatusOr<NodeId> Emit(const Token& at, Call, const std::vector<Spelling>& names,
                              const std::vector<TensorType>& declared);
  absl::Status Materialise(const Token& at, Call*, std::vector<ValueId>* in);
  void Remember(const Spelling&, ValueId);
  std::string GivenName(const Spelling&, uint32_t result) const;

  TextReader& r_;
  Lexer& lex_;
  Graph* graph_ = nullptr;
  bool label_ = false;  // the statement under way is `name: op(...)`
  std::vector<SignatureResult> signature_;
  HashMap<std::string, ValueId> loose_;  // names written bare that look like v12 but are names
};

}  // namespace keel
