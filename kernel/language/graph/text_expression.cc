// text_expression.cc: expressions in a `fn`: infix operators, literals, calls, and the nodes that they
// become.

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/element.h"
#include "kernel/language/graph/module_index.h"
#include "kernel/language/graph/text_function.h"

namespace keel {
namespace {

constexpr int kMaxDepth = 32;

struct Infix {
  std::string_view sign, op;
};
constexpr Infix kCompare[] = {{"<", "less"},           {"<=", "less_equal"}, {">", "greater"},
                              {">=", "greater_equal"}, {"==", "equal"},      {"!=", "not_equal"}};
constexpr Infix kSum[] = {{"+", "add"}, {"-", "sub"}};
constexpr Infix kProduct[] = {{"*", "mul"}, {"/", "div"}, {"%", "mod"}};
constexpr std::span<const Infix> kLevels[] = {kCompare, kSum, kProduct};  // lowest precedence first

}  // namespace

absl::StatusOr<Expr> FunctionReader::Expression(int depth) {
  if (depth - base_ > kMaxDepth)
    return r_.Fail(lex_.Peek(), absl::StrCat("nested more than ", kMaxDepth, " deep"));
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
  if (depth - base_ > kMaxDepth)
    return r_.Fail(lex_.Peek(), absl::StrCat("nested more than ", kMaxDepth, " deep"));
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
  std::string own = std::exchange(pending_, "");
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
  e.call = std::make_unique<Call>();
  ASSIGN_OR_RETURN(e.call->op,
                   r_.Locate(name.at, r_.module.catalogue->Find(name.name, static_cast<uint32_t>(version))));
  e.kind = Expr::kCall;
  RETURN_IF_ERROR(Operands(depth, e.call.get()));
  if (lex_.AtPunct("{")) {
    ASSIGN_OR_RETURN(Attrs attrs, r_.ReadAttrs(r_.module.index->Facts(*e.call->op)));
    std::move(attrs.begin(), attrs.end(), std::back_inserter(e.call->attrs));
  }
  if (lex_.Accept("@")) {
    ASSIGN_OR_RETURN(Spelling device, r_.ReadName("a device's name"));
    ASSIGN_OR_RETURN(e.call->device, r_.Locate(device.at, r_.module.DeviceScope(device.name)));
  }
  RETURN_IF_ERROR(Bodies(depth, own, e.call.get()));
  return e;
}

// `read(w)`: a variable is the first argument of ops on variables.
absl::Status FunctionReader::VariableOf(Call* call) {
  const std::string& attr = r_.module.index->Facts(*call->op).var_attr;
  if (attr.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a variable"));
  AttrValue value;
  value.kind = KEEL_ATTR_VAR;
  ASSIGN_OR_RETURN(value.i, r_.Locate(name.at, r_.module.FindVariable(name.name)));
  call->attrs.push_back({attr, std::move(value)});
  return lex_.AtPunct(")") ? absl::OkStatus() : lex_.Expect(",");
}

absl::Status FunctionReader::Operands(int depth, Call* call) {
  RETURN_IF_ERROR(lex_.Expect("("));
  RETURN_IF_ERROR(VariableOf(call));
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
  ASSIGN_OR_RETURN(e.call->op, r_.Locate(at, r_.module.catalogue->Find(op, 0)));
  e.call->in = std::move(in);
  return e;
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

// Literals become constants of the dtypes that inference assigns them.
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
    ModuleIndex& index = *r_.module.index;
    RETURN_IF_ERROR(r_.Locate(at, CanonicalAttrs(index.Facts(*call->op), r_.module.dims, &call->attrs)));
    RETURN_IF_ERROR(r_.Locate(at, Infer(*call->op, operands, call->attrs, r_.module.dims, &inferred,
                                        &index.graph_types, &index.var_types)));
  }
  for (size_t i = 0; i < operands.size(); i++) {
    Expr& e = call->in[i];
    if (e.kind == Expr::kLiteral) {
      if (i >= inferred.operand_dtypes.size()) return r_.Fail(e.at, "the op does not accept a literal here");
      ASSIGN_OR_RETURN(uint32_t number, AddLiteral(r_, e.at, e.literal, inferred.operand_dtypes[i]));
      ASSIGN_OR_RETURN(e.value, graph_->AddConstant(number));
    }
    in->push_back(e.kind == Expr::kNone ? kNoValue : e.value);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> AddLiteral(TextReader& r, const Token& at, const Literal& literal, DType dtype) {
  uint64_t element = 0;
  if (literal.dtype != DType::kNone) dtype = literal.dtype;
  RETURN_IF_ERROR(r.Encode(at, literal, dtype, &element));
  return r.module.AddConstant(ScalarOf(dtype, &element));
}

}  // namespace keel
