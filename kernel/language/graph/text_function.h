// text_function.h: the parser of one `fn`. A statement is `names = expression : types`. An expression is a
// call, possibly with nested calls and infix operators, which become unnamed nodes immediately. Only the
// outermost Call is deferred, until its names and types are known. Statements are parsed in text_function.cc,
// expressions in text_expression.cc, inline bodies in text_body.cc. Private to these files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/language/graph/text_reader.h"

namespace keel {

struct Call;
// An expression before its use: a value, a literal without dtype, none, or a call.
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
  uint32_t device = 0;  // its device scope
};

class FunctionReader {
 public:
  explicit FunctionReader(TextReader& r, int base = 0) : r_(r), lex_(r.lex), base_(base) {}
  absl::Status Run();
  // Parses `(x, y) { ... yield x }` as a graph with this name; `given`: the types of its parameters.
  absl::StatusOr<uint32_t> RunInline(std::string_view name, const std::vector<TensorType>& given);

 private:
  struct SignatureResult {
    std::string name;
    TensorType type;
    Token at;
  };
  absl::Status Param(const TensorType* given);
  absl::Status SignatureResults();
  absl::Status Rules();
  absl::Status Statement();
  absl::Status Return();
  const AttrInfo* AtBody(const OpDef& op);  // at the label of an inline body
  absl::Status Bodies(int depth, std::string_view node, Call* call);
  std::string BodyName(std::string_view node, std::string_view label) const;
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
  absl::Status Settle(Expr*);  // replaces a call by the value of its node
  absl::StatusOr<NodeId> Emit(const Token& at, Call, const std::vector<Spelling>& names,
                              const std::vector<TensorType>& declared);
  absl::Status Materialise(const Token& at, Call*, std::vector<ValueId>* in);
  absl::StatusOr<std::vector<std::string>> GivenNames(const std::vector<Spelling>& names) const;
  void Remember(const Spelling&, ValueId);
  bool IsNumberOfOther(std::pair<NodeId, uint32_t> number) const;
  std::string GivenName(const Spelling&, uint32_t result) const;

  TextReader& r_;
  Lexer& lex_;
  const int base_;  // nesting depth of the enclosing bodies and expressions
  Graph* graph_ = nullptr;
  std::string pending_;  // the name of the current statement's own call
  bool label_ = false;   // the current statement is `name: op(...)`
  std::vector<SignatureResult> signature_;
  HashMap<std::string, ValueId> bare_names_;  // unquoted names such as v12 that denote other values
  std::vector<bool> written_;                 // by node: whether its number is a name in the text
};

}  // namespace keel
