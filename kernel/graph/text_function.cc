// text_function.cc: reads one `fn`. A statement is `names = expression : types`; an expression is a call,
// possibly with calls and infix operators inside, which become unnamed nodes at once. Only the outermost
// call waits, for its names and types: a Call.

#include "kernel/graph/constant.h"
#include "kernel/graph/element.h"
#include "kernel/graph/text_reader.h"

namespace keel {
namespace {

constexpr int kMaxDepth = 32;

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
  std::vector<SignatureResult> signature_;
  absl::flat_hash_map<std::string, ValueId> loose_;  // names written bare that look like v12 but are names
};

absl::Status FunctionReader::Run() {
  Token at = lex_.Peek();
  RETURN_IF_ERROR(lex_.Expect("@"));
  ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a graph's name"));
  auto graph = r_.module.AddGraph(name.name);
  if (!graph.ok()) return r_.Locate(at, graph.status());
  graph_ = *graph;
  RETURN_IF_ERROR(Params());
  RETURN_IF_ERROR(SignatureResults());
  RETURN_IF_ERROR(lex_.Expect("{"));
  while (!lex_.At("return")) RETURN_IF_ERROR(Statement());
  RETURN_IF_ERROR(Return());
  return lex_.Expect("}");
}

absl::Status FunctionReader::Params() {
  RETURN_IF_ERROR(lex_.Expect("("));
  while (!lex_.AtPunct(")")) {
    ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a parameter's name"));
    RETURN_IF_ERROR(lex_.Expect(":"));
    ASSIGN_OR_RETURN(TensorType type, r_.ReadType());
    auto value = graph_->AddParam(name.name, std::move(type));
    if (!value.ok()) return r_.Locate(name.at, value.status());
    Remember(name, *value);
    if (!lex_.Accept(",")) break;
  }
  return lex_.Expect(")");
}

// `-> y: f32[b], f32[]`, with or without brackets; may be left out.
absl::Status FunctionReader::SignatureResults() {
  if (!lex_.Accept("->")) return absl::OkStatus();
  bool brackets = lex_.Accept("(");
  do {
    if (brackets && lex_.AtPunct(")")) break;
    SignatureResult result;
    result.at = lex_.Peek();
    Lexer saved = lex_;
    if (r_.AtNameOrString()) {
      ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a result"));
      if (lex_.Accept(":"))
        result.name = name.name;
      else
        lex_ = saved;
    }
    ASSIGN_OR_RETURN(result.type, r_.ReadType());
    signature_.push_back(std::move(result));
  } while (lex_.Accept(","));
  return brackets ? lex_.Expect(")") : absl::OkStatus();
}

absl::StatusOr<std::vector<Spelling>> FunctionReader::StatementNames() {
  std::vector<Spelling> names;
  if (!r_.AtNameOrString()) return names;
  Lexer saved = lex_;
  do {
    ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a value's name"));
    names.push_back(std::move(name));
  } while (lex_.Accept(","));
  if (!lex_.Accept("=")) {  // a call for its effect
    if (names.size() > 1) return lex_.Fail("expected '=' after the names of results");
    lex_ = saved;
    names.clear();
  }
  return names;
}

absl::StatusOr<std::vector<TensorType>> FunctionReader::DeclaredTypes() {
  std::vector<TensorType> types;
  if (!lex_.Accept(":")) return types;
  do {
    ASSIGN_OR_RETURN(TensorType type, r_.ReadType());
    types.push_back(std::move(type));
  } while (lex_.Accept(","));
  return types;
}

absl::Status FunctionReader::Statement() {
  if (lex_.Accept(";")) return absl::OkStatus();
  Token at = lex_.Peek();
  if (!r_.AtNameOrString()) return lex_.Fail("expected a statement as `y = op(x)`, or return");
  ASSIGN_OR_RETURN(std::vector<Spelling> names, StatementNames());
  ASSIGN_OR_RETURN(Expr e, Expression(0));
  if (e.kind != Expr::kCall)
    return r_.Fail(e.at, "a statement is the call of an op; to give a value another name write identity(x)");
  ASSIGN_OR_RETURN(std::vector<TensorType> declared, DeclaredTypes());
  ASSIGN_OR_RETURN(NodeId node, Emit(at, std::move(*e.call), names, declared));
  const std::vector<ValueId>& out = graph_->nodes[node].out;
  if (!names.empty() && names.size() != out.size())
    return r_.Fail(at, absl::StrCat(OpName(*graph_->nodes[node].op), " has ", out.size(), " results but ",
                                    names.size(), " names"));
  return absl::OkStatus();
}

absl::Status FunctionReader::Return() {
  Token at = lex_.Next();
  size_t count = 0;
  for (; !lex_.AtPunct("}") && !lex_.AtPunct(";"); count++) {
    ASSIGN_OR_RETURN(Expr e, Expression(0));
    if (e.kind == Expr::kNone) return r_.Fail(e.at, "a result cannot be none");
    if (e.kind == Expr::kLiteral) {
      DType dtype = e.literal.weak == Operand::kWeakInt ? DType::kI32 : DType::kF32;
      ASSIGN_OR_RETURN(uint32_t number, AddLiteral(r_, e.at, e.literal, dtype));
      ASSIGN_OR_RETURN(e.value, graph_->AddConstant(number));
    }
    RETURN_IF_ERROR(Settle(&e));
    std::string_view name = count < signature_.size() ? std::string_view(signature_[count].name) : "";
    if (absl::Status s = graph_->AddResult(name, e.value); !s.ok()) return r_.Locate(e.at, s);
    if (count < signature_.size()) {
      auto merged = MergeTypes(absl::StrCat("result ", count), graph_->values[e.value].type,
                               signature_[count].type, r_.module.dims);
      if (!merged.ok()) return r_.Locate(signature_[count].at, merged.status());
    }
    if (!lex_.Accept(",")) {
      count++;
      break;
    }
  }
  lex_.Accept(";");
  if (!signature_.empty() && signature_.size() != count)
    return r_.Fail(
        at, absl::StrCat("the signature has ", signature_.size(), " results but return gives ", count));
  return absl::OkStatus();
}

struct Infix {
  std::string_view sign, op;
};
constexpr Infix kCompare[] = {{"<", "less"},           {"<=", "less_equal"}, {">", "greater"},
                              {">=", "greater_equal"}, {"==", "equal"},      {"!=", "not_equal"}};
constexpr Infix kSum[] = {{"+", "add"}, {"-", "sub"}};
constexpr Infix kProduct[] = {{"*", "mul"}, {"/", "div"}, {"%", "mod"}};
constexpr std::span<const Infix> kLevels[] = {kCompare, kSum, kProduct};  // loosest first

absl::StatusOr<Expr> FunctionReader::Expression(int depth) {
  if (depth > kMaxDepth) return r_.Fail(lex_.Peek(), absl::StrCat("nested more than ", kMaxDepth, " deep"));
  return Binary(depth, 0);
}

absl::StatusOr<Expr> FunctionReader::Binary(int depth, size_t level) {
  if (level == std::size(kLevels)) return Unary(depth);
  ASSIGN_OR_RETURN(Expr left, Binary(depth, level + 1));
  for (;;) {
    const Infix* found = nullptr;
    for (const Infix& infix : kLevels[level])
      if (lex_.AtPunct(infix.sign)) found = &infix;
    if (!found) return left;
    Token at = lex_.Next();
    ASSIGN_OR_RETURN(Expr right, Binary(depth, level + 1));
    std::vector<Expr> in;
    in.push_back(std::move(left));
    in.push_back(std::move(right));
    ASSIGN_OR_RETURN(left, MakeCall(at, found->op, std::move(in)));
  }
}

absl::StatusOr<Expr> FunctionReader::Unary(int depth) {
  if (!lex_.AtPunct("-") || r_.AtLiteral()) return Primary(depth);
  if (depth > kMaxDepth) return r_.Fail(lex_.Peek(), absl::StrCat("nested more than ", kMaxDepth, " deep"));
  Token at = lex_.Next();
  std::vector<Expr> in(1);
  ASSIGN_OR_RETURN(in[0], Unary(depth + 1));
  return MakeCall(at, "neg", std::move(in));
}

absl::StatusOr<Expr> FunctionReader::Primary(int depth) {
  Expr e;
  e.at = lex_.Peek();
  if (lex_.Accept("(")) {
    ASSIGN_OR_RETURN(e, Expression(depth + 1));
    RETURN_IF_ERROR(lex_.Expect(")"));
  } else if (r_.AtTypedLiteral()) {
    ASSIGN_OR_RETURN(Literal literal, r_.ReadTypedLiteral());
    ASSIGN_OR_RETURN(uint32_t number, AddLiteral(r_, e.at, literal, literal.dtype));
    ASSIGN_OR_RETURN(e.value, graph_->AddConstant(number));
    e.kind = Expr::kValue;
  } else if (r_.AtLiteral()) {
    ASSIGN_OR_RETURN(e.literal, r_.ReadLiteral());
    e.kind = Expr::kLiteral;
  } else if (!lex_.Accept("none")) {
    return CallOrName(depth);
  }
  return e;
}

absl::StatusOr<Expr> FunctionReader::CallOrName(int depth) {
  ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a value or an op"));
  Expr e;
  e.at = name.at;
  int64_t version = 0;
  if (lex_.Accept("@")) {
    ASSIGN_OR_RETURN(version, lex_.Int("the op's version"));
    if (version < 1 || version > 1'000'000) return r_.Fail(name.at, "an op's version is a number from 1");
    if (!lex_.AtPunct("(")) return lex_.Fail("expected '('");
  }
  if (name.quoted || !lex_.AtPunct("(")) {
    ASSIGN_OR_RETURN(e.value, Resolve(name));
    e.kind = Expr::kValue;
    return e;
  }
  auto op = r_.module.catalogue->Find(name.name, static_cast<uint32_t>(version));
  if (!op.ok()) return r_.Locate(name.at, op.status());
  e.call = std::make_unique<Call>();
  e.call->op = *op;
  e.kind = Expr::kCall;
  RETURN_IF_ERROR(Operands(depth, e.call.get()));
  if (lex_.AtPunct("{")) {
    ASSIGN_OR_RETURN(e.call->attrs, r_.ReadAttrs(r_.module.index->Facts(**op)));
  }
  return e;
}

absl::Status FunctionReader::Operands(int depth, Call* call) {
  RETURN_IF_ERROR(lex_.Expect("("));
  while (!lex_.AtPunct(")")) {
    ASSIGN_OR_RETURN(Expr e, Expression(depth + 1));
    RETURN_IF_ERROR(Settle(&e));
    call->in.push_back(std::move(e));
    if (!lex_.Accept(",")) break;
  }
  return lex_.Expect(")");
}

absl::StatusOr<Expr> FunctionReader::MakeCall(const Token& at, std::string_view op, std::vector<Expr> in) {
  for (Expr& e : in) RETURN_IF_ERROR(Settle(&e));
  Expr e;
  e.at = at;
  e.kind = Expr::kCall;
  e.call = std::make_unique<Call>();
  auto found = r_.module.catalogue->Find(op, 0);
  if (!found.ok()) return r_.Locate(at, found.status());
  e.call->op = *found;
  e.call->in = std::move(in);
  return e;
}

// The order: names written bare that look like v12, results without a name, names of this graph, constants.
absl::StatusOr<ValueId> FunctionReader::Resolve(const Spelling& s) {
  auto split = SplitResultName(s.name);
  if (!s.quoted && split.has_value()) {
    if (auto it = loose_.find(s.name); it != loose_.end()) return it->second;
    auto [node, result] = split.value_or(std::pair<NodeId, uint32_t>(0, 0));
    if (node < graph_->nodes.size() && result < graph_->nodes[node].out.size()) {
      ValueId value = graph_->nodes[node].out[result];
      if (graph_->values[value].name.empty()) return value;
    }
  }
  if (auto it = graph_->by_name.find(s.name); it != graph_->by_name.end()) return it->second;
  auto constant = r_.module.FindConstant(s.name);
  auto value = constant.ok() ? graph_->AddConstant(*constant) : graph_->Find(s.name);
  if (!value.ok()) return r_.Locate(s.at, value.status());
  return *value;
}

absl::Status FunctionReader::Settle(Expr* e) {
  if (e->kind != Expr::kCall) return absl::OkStatus();
  ASSIGN_OR_RETURN(NodeId node, Emit(e->at, std::move(*e->call), {}, {}));
  const Node& n = graph_->nodes[node];
  if (n.out.size() != 1)
    return r_.Fail(e->at,
                   absl::StrCat(OpName(*n.op), " has ", n.out.size(), " results and cannot be an operand"));
  e->kind = Expr::kValue;
  e->value = n.out[0];
  e->call.reset();
  return absl::OkStatus();
}

// Literals become constants of the dtypes that inference gives them.
absl::Status FunctionReader::Materialise(const Token& at, Call* call, std::vector<ValueId>* in) {
  std::vector<Operand> operands(call->in.size());
  bool weak = false;
  for (size_t i = 0; i < operands.size(); i++) {
    Expr& e = call->in[i];
    if (e.kind == Expr::kLiteral && e.literal.dtype != DType::kNone) {
      ASSIGN_OR_RETURN(uint32_t number, AddLiteral(r_, e.at, e.literal, e.literal.dtype));
      ASSIGN_OR_RETURN(e.value, graph_->AddConstant(number));
      e.kind = Expr::kValue;
    }
    operands[i].kind = e.kind == Expr::kNone      ? Operand::kAbsent
                       : e.kind == Expr::kLiteral ? e.literal.weak
                                                  : Operand::kTyped;
    if (e.kind == Expr::kValue) operands[i].type = graph_->values[e.value].type;
    weak = weak || e.kind == Expr::kLiteral;
  }
  Inferred inferred;
  if (weak) {
    absl::Status s = CanonicalAttrs(r_.module.index->Facts(*call->op), r_.module.dims, &call->attrs);
    if (s.ok()) s = Infer(*call->op, operands, call->attrs, r_.module.dims, &inferred);
    if (!s.ok()) return r_.Locate(at, s);
  }
  for (size_t i = 0; i < operands.size(); i++) {
    Expr& e = call->in[i];
    if (e.kind == Expr::kLiteral) {
      if (i >= inferred.operand_dtypes.size()) return r_.Fail(e.at, "the op takes no literal here");
      ASSIGN_OR_RETURN(uint32_t number, AddLiteral(r_, e.at, e.literal, inferred.operand_dtypes[i]));
      ASSIGN_OR_RETURN(e.value, graph_->AddConstant(number));
    }
    in->push_back(e.kind == Expr::kNone ? kNoValue : e.value);
  }
  return absl::OkStatus();
}

std::string FunctionReader::GivenName(const Spelling& s, uint32_t result) const {
  bool own = !s.quoted && s.name == ResultName(static_cast<NodeId>(graph_->nodes.size()), result);
  return own ? "" : s.name;
}

void FunctionReader::Remember(const Spelling& s, ValueId value) {
  if (!s.quoted && SplitResultName(s.name) && !graph_->values[value].name.empty())
    loose_.emplace(s.name, value);
}

absl::StatusOr<NodeId> FunctionReader::Emit(const Token& at, Call call, const std::vector<Spelling>& names,
                                            const std::vector<TensorType>& declared) {
  std::vector<ValueId> in;
  RETURN_IF_ERROR(Materialise(at, &call, &in));
  std::vector<std::string> given;
  for (const Spelling& s : names) given.push_back(GivenName(s, static_cast<uint32_t>(given.size())));
  for (size_t i = 0; i < names.size(); i++)
    if (!given[i].empty() && !names[i].quoted && SplitResultName(given[i]) && graph_->Find(given[i]).ok())
      return r_.Fail(names[i].at, absl::StrCat("there is a value '", given[i], "' already"));
  auto node = graph_->AddNode(call.op, std::move(in), std::move(call.attrs), given, declared);
  if (!node.ok()) return r_.Locate(at, node.status());
  const std::vector<ValueId>& out = graph_->nodes[*node].out;
  for (size_t i = 0; i < names.size() && i < out.size(); i++) Remember(names[i], out[i]);
  return *node;
}

}  // namespace

absl::Status ReadFunction(TextReader& r) { return FunctionReader(r).Run(); }

absl::StatusOr<uint32_t> AddLiteral(TextReader& r, const Token& at, const Literal& literal, DType dtype) {
  uint64_t element = 0;
  if (literal.dtype != DType::kNone) dtype = literal.dtype;
  RETURN_IF_ERROR(r.Encode(at, literal, dtype, &element));
  return r.module.AddConstant(ScalarOf(dtype, &element));
}

}  // namespace keel
