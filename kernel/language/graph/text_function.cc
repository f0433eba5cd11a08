// text_function.cc: signature, statements and return of one `fn`, and the nodes that they become.

#include "kernel/language/graph/text_function.h"

#include "kernel/language/graph/names.h"
#include "kernel/language/graph/types.h"

namespace keel {

absl::Status FunctionReader::Run() {
  Token at = lex_.Peek();
  RETURN_IF_ERROR(lex_.Expect("@"));
  ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a graph's name"));
  ASSIGN_OR_RETURN(graph_, r_.Locate(at, r_.module.AddGraph(name.name)));
  RETURN_IF_ERROR(lex_.List("(", ")", [&] { return Param(nullptr); }));
  RETURN_IF_ERROR(SignatureResults());
  RETURN_IF_ERROR(Rules());
  RETURN_IF_ERROR(lex_.Expect("{"));
  while (!lex_.At("return")) RETURN_IF_ERROR(Statement());
  RETURN_IF_ERROR(Return());
  return lex_.Expect("}");
}

// `name: type`. given: the type that it has if it is omitted; null: there is none.
absl::Status FunctionReader::Param(const TensorType* given) {
  ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a parameter's name"));
  TensorType type;
  if (given && !lex_.AtPunct(":")) {
    type = *given;
  } else {
    RETURN_IF_ERROR(lex_.Expect(":"));
    ASSIGN_OR_RETURN(type, r_.ReadType());
  }
  ASSIGN_OR_RETURN(ValueId value, r_.Locate(name.at, graph_->AddParam(name.name, std::move(type))));
  Remember(name, value);
  return absl::OkStatus();
}

// `-> y: f32[b], f32[]`, optionally in brackets; may be omitted.
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

// `where b in 2..65536, b % 8 == 0`: the rules are stored verbatim.
absl::Status FunctionReader::Rules() {
  if (!lex_.Accept("where")) return absl::OkStatus();
  do {
    Token first = lex_.Peek(), last = first;
    for (int open = 0; !lex_.AtEnd() && !lex_.AtPunct("{") && (open || !lex_.AtPunct(","));) {
      open += lex_.AtPunct("(") - lex_.AtPunct(")");
      last = lex_.Next();
    }
    const char* begin = first.text.data();
    std::string_view text(begin, static_cast<size_t>(last.text.data() + last.text.size() - begin));
    RETURN_IF_ERROR(r_.Locate(first, graph_->AddRule(text)));
  } while (lex_.Accept(","));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Spelling>> FunctionReader::StatementNames() {
  std::vector<Spelling> names;
  label_ = false;
  if (!r_.AtNameOrString()) return names;
  Lexer saved = lex_;
  do {
    ASSIGN_OR_RETURN(Spelling name, r_.ReadName("a value's name"));
    names.push_back(std::move(name));
  } while (lex_.Accept(","));
  label_ = names.size() == 1 && lex_.Accept(":");  // a label of a node without results
  if (label_) return names;
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
  if (!r_.AtNameOrString()) return lex_.Fail("expected a statement such as `y = op(x)`, or return");
  ASSIGN_OR_RETURN(std::vector<Spelling> names, StatementNames());
  pending_ = names.empty() ? "" : GivenName(names[0], 0);
  ASSIGN_OR_RETURN(Expr e, Expression(base_));
  if (e.kind != Expr::kCall)
    return r_.Fail(e.at, "a statement must be a call of an op; to rename a value write identity(x)");
  ASSIGN_OR_RETURN(std::vector<TensorType> declared, DeclaredTypes());
  ASSIGN_OR_RETURN(NodeId node, Emit(at, std::move(*e.call), names, declared));
  const std::vector<ValueId>& out = graph_->nodes[node].out;
  if (label_ && !out.empty())
    return r_.Fail(
        at, absl::StrCat(OpName(*graph_->nodes[node].op), " has results: write `", names[0].name, " = ...`"));
  if (!label_ && !names.empty() && names.size() != out.size())
    return r_.Fail(at, absl::StrCat(OpName(*graph_->nodes[node].op), " has ", out.size(), " results but ",
                                    names.size(), " names"));
  return absl::OkStatus();
}

absl::Status FunctionReader::Return() {
  Token at = lex_.Next();
  size_t count = 0;
  for (; !lex_.AtPunct("}") && !lex_.AtPunct(";"); count++) {
    ASSIGN_OR_RETURN(Expr e, Expression(base_));
    if (e.kind == Expr::kNone) return r_.Fail(e.at, "a result cannot be none");
    if (e.kind == Expr::kLiteral) {
      DType dtype = e.literal.weak == Operand::kWeakInt ? DType::kI32 : DType::kF32;
      ASSIGN_OR_RETURN(uint32_t number, AddLiteral(r_, e.at, e.literal, dtype));
      ASSIGN_OR_RETURN(e.value, graph_->AddConstant(number));
    }
    RETURN_IF_ERROR(Settle(&e));
    std::string_view name = count < signature_.size() ? std::string_view(signature_[count].name) : "";
    RETURN_IF_ERROR(r_.Locate(e.at, graph_->AddResult(name, e.value)));
    if (count < signature_.size())
      RETURN_IF_ERROR(r_.Locate(signature_[count].at,
                                MergeTypes(absl::StrCat("result ", count), graph_->values[e.value].type,
                                           signature_[count].type, r_.module.dims)
                                    .status()));
    if (!lex_.Accept(",")) {
      count++;
      break;
    }
  }
  lex_.Accept(";");
  if (!signature_.empty() && signature_.size() != count)
    return r_.Fail(at,
                   absl::StrCat("the signature has ", signature_.size(), " results but return has ", count));
  return absl::OkStatus();
}

// Lookup order: v12-like names assigned in the text, unnamed results, names of this graph, constants.
absl::StatusOr<ValueId> FunctionReader::Resolve(const Spelling& s) {
  auto split = SplitResultName(s.name);
  if (!s.quoted && split.has_value()) {
    if (auto it = bare_names_.find(s.name); it != bare_names_.end()) return it->second;
    auto [node, result] = split.value_or(std::pair<NodeId, uint32_t>(0, 0));
    if (node < graph_->nodes.size() && result < graph_->nodes[node].out.size()) {
      ValueId value = graph_->nodes[node].out[result];
      if (graph_->values[value].name.empty()) return value;
    }
  }
  if (auto it = graph_->by_name.find(s.name); it != graph_->by_name.end()) return it->second;
  auto constant = r_.module.FindConstant(s.name);
  return r_.Locate(s.at, constant.ok() ? graph_->AddConstant(*constant) : graph_->Find(s.name));
}

std::string FunctionReader::GivenName(const Spelling& s, uint32_t result) const {
  bool own = !s.quoted && s.name == ResultName(static_cast<NodeId>(graph_->nodes.size()), result);
  return own ? "" : s.name;
}

// Whether an earlier value or node is known only by this number.
bool FunctionReader::IsNumberOfOther(std::pair<NodeId, uint32_t> number) const {
  if (number.first >= graph_->nodes.size()) return false;
  const Node& n = graph_->nodes[number.first];
  if (n.out.empty()) return n.name.empty();
  return number.second < n.out.size() && graph_->values[n.out[number.second]].name.empty();
}

// A line inserted into printed text shifts the numbers of later results. So if an unquoted v12 is the number
// of another result that the text does not refer to by number, it is a name valid in this text only.
absl::StatusOr<std::vector<std::string>> FunctionReader::GivenNames(
    const std::vector<Spelling>& names) const {
  std::vector<std::string> given;
  for (const Spelling& s : names) {
    given.push_back(GivenName(s, static_cast<uint32_t>(given.size())));
    auto number = SplitResultName(s.name);
    if (s.quoted || !number) continue;
    bool taken = bare_names_.contains(s.name);
    if (std::string& name = given.back(); !name.empty()) {
      taken |= graph_->by_name.contains(name) || graph_->nodes_by_name.contains(name);
      if (IsNumberOfOther(*number)) {
        taken |= written_[number->first];
        name.clear();
      }
    }
    if (taken) return r_.Fail(s.at, absl::StrCat("value '", s.name, "' is already defined"));
  }
  return given;
}

void FunctionReader::Remember(const Spelling& s, ValueId value) {
  const Value& v = graph_->values[value];
  if (!s.quoted && SplitResultName(s.name) && (!v.name.empty() || graph_->ValueName(value) != s.name))
    bare_names_.emplace(s.name, value);
}

absl::StatusOr<NodeId> FunctionReader::Emit(const Token& at, Call call, const std::vector<Spelling>& names,
                                            const std::vector<TensorType>& declared) {
  std::vector<ValueId> in;
  RETURN_IF_ERROR(Materialise(at, &call, &in));
  ASSIGN_OR_RETURN(std::vector<std::string> given, GivenNames(names));
  graph_->scope.device = call.device;
  ASSIGN_OR_RETURN(NodeId node, r_.Locate(at, graph_->AddNode(call.op, std::move(in), std::move(call.attrs),
                                                              given, declared)));
  graph_->scope = {};
  written_.resize(graph_->nodes.size());
  for (uint32_t i = 0; i < names.size(); i++)
    if (!names[i].quoted && names[i].name == ResultName(node, i)) written_[node] = true;
  const std::vector<ValueId>& out = graph_->nodes[node].out;
  for (size_t i = 0; i < names.size() && i < out.size(); i++) Remember(names[i], out[i]);
  return node;
}

absl::Status ReadFunction(TextReader& r) { return FunctionReader(r).Run(); }

}  // namespace keel
