// text_body.cc: inline bodies: `r = cond(p, x) then(x) { yield x } else(x) { yield neg(x) }`. A label is the
// name of the op's attribute; if that is a list, each body is appended to it. A body without a name (`then
// @name(x) {`) is named after its graph, node and label.

#include "kernel/base/free_name.h"
#include "kernel/language/graph/module_index.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/text_function.h"

namespace keel {

const AttrInfo* FunctionReader::AtBody(const OpDef& op) {
  if (!IsControl(op) || !lex_.AtName()) return nullptr;
  Token next = lex_.PeekSecond();
  if (next.kind != Token::kPunct || (next.text != "(" && next.text != "@")) return nullptr;
  const AttrInfo* attr = r_.module.index->Facts(op).FindAttr(lex_.Peek().text);
  bool graph = attr && (attr->kind == KEEL_ATTR_GRAPH || attr->kind == KEEL_ATTR_GRAPHS);
  return graph ? attr : nullptr;
}

// A free name; the printer omits the name only if it is the first choice.
std::string FunctionReader::BodyName(std::string_view node, std::string_view label) const {
  return FreeName(absl::StrCat(graph_->name, ".", node, ".", label),
                  [&](const std::string& name) { return r_.module.GraphNumber(name).ok(); });
}

absl::Status FunctionReader::Bodies(int depth, std::string_view node, Call* call) {
  if (!AtBody(*call->op)) return absl::OkStatus();
  Token start = lex_.Peek();
  std::vector<Operand> operands(call->in.size());
  for (size_t i = 0; i < operands.size(); i++) {
    const Expr& e = call->in[i];
    bool literal = e.kind == Expr::kLiteral;
    operands[i].kind = e.kind == Expr::kNone ? Operand::kAbsent : literal ? e.literal.weak : Operand::kTyped;
    if (e.kind == Expr::kValue) operands[i].type = graph_->values[e.value].type;
    if (!literal || e.literal.dtype == DType::kNone) continue;
    operands[i].kind = Operand::kTyped;
    operands[i].type.dtype = e.literal.dtype;
  }
  RETURN_IF_ERROR(
      r_.Locate(start, CanonicalAttrs(r_.module.index->Facts(*call->op), r_.module.dims, &call->attrs)));
  ASSIGN_OR_RETURN(std::vector<TensorType> given,
                   r_.Locate(start, BodyParams(*call->op, operands, call->attrs, r_.module.dims)));
  std::string own =
      node.empty() ? ResultName(static_cast<NodeId>(graph_->nodes.size()), 0) : std::string(node);
  while (const AttrInfo* attr = AtBody(*call->op)) {
    Token at = lex_.Next();
    Attr* known = nullptr;
    for (Attr& a : call->attrs)
      if (a.name == attr->name) known = &a;
    bool list = attr->kind == KEEL_ATTR_GRAPHS;
    if (known && !list) return r_.Fail(at, absl::StrCat("a second body '", attr->name, "'"));
    std::string name =
        BodyName(own, list ? absl::StrCat(attr->name, known ? known->value.list.size() : 0) : attr->name);
    if (lex_.Accept("@")) {
      ASSIGN_OR_RETURN(Spelling spelling, r_.ReadName("a graph's name"));
      name = spelling.name;
    }
    ASSIGN_OR_RETURN(uint32_t number, FunctionReader(r_, depth + 1).RunInline(name, given));
    if (!known) {
      call->attrs.push_back({attr->name, {}});
      known = &call->attrs.back();
      known->value.kind = attr->kind;
    }
    if (list)
      known->value.list.push_back(number);
    else
      known->value.i = number;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> FunctionReader::RunInline(std::string_view name,
                                                   const std::vector<TensorType>& given) {
  Token at = lex_.Peek();
  if (base_ > static_cast<int>(kMaxCallDepth))
    return r_.Fail(at, absl::StrCat("bodies nest more than ", kMaxCallDepth, " deep"));
  ASSIGN_OR_RETURN(graph_, r_.Locate(at, r_.module.AddGraph(name)));
  RETURN_IF_ERROR(lex_.List("(", ")", [&] {
    size_t i = graph_->params.size();
    return i < given.size()
               ? Param(&given[i])
               : r_.Fail(lex_.Peek(), absl::StrCat("the body has only ", given.size(), " parameters"));
  }));
  if (size_t count = graph_->params.size(); count != given.size())
    return lex_.Fail(absl::StrCat("the body has ", given.size(), " parameters, but ", count, " names"));
  RETURN_IF_ERROR(lex_.Expect("{"));
  while (!lex_.At("yield")) {
    if (lex_.AtPunct("}")) return lex_.Fail("expected yield before the end of a body");
    RETURN_IF_ERROR(Statement());
  }
  RETURN_IF_ERROR(Return());
  RETURN_IF_ERROR(lex_.Expect("}"));
  return r_.module.GraphNumber(graph_->name);
}

}  // namespace keel
